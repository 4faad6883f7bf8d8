// Builds like `rolldown -c`, without printing the list of files.
import { build } from 'rolldown'
import { loadConfig } from 'rolldown/config'

// npm packs each file with its mode, which is not to depend on who builds.
process.umask(0o022)
await build(await loadConfig('rolldown.config.ts'))
