// As `rolldown -c` builds, but without its list of the files.
import { build } from 'rolldown'
import { loadConfig } from 'rolldown/config'

await build(await loadConfig('rolldown.config.ts'))
