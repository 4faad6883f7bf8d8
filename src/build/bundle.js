// Builds like `rolldown -c`, without printing the list of files.
import { build } from 'rolldown'
import { loadConfig } from 'rolldown/config'

// npm packs each file with its mode, so the umask of the user must not change the package.
process.umask(0o022)
await build(await loadConfig('rolldown.config.ts'))
