// Builds like `rolldown -c`, without printing the list of files.
import { build } from 'rolldown'
import { loadConfig } from 'rolldown/config'

await build(await loadConfig('rolldown.config.ts'))
