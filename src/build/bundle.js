// Builds like `rolldown -c`, without printing the list of files. A program that starts during the build finds
// a complete `dist`.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { build } from 'rolldown'
import { loadConfig } from 'rolldown/config'

// npm packs each file with its mode, so the umask of the user must not change the package.
process.umask(0o022)
const { output, ...config } = await loadConfig('rolldown.config.ts')
const [next, previous] = ['next', 'previous'].map((name) => `dist.${name}-${process.pid}`)
try {
  await build({ ...config, output: { ...output, dir: next } })
  if (existsSync('dist')) renameSync('dist', previous)
  renameSync(next, 'dist')
} finally {
  for (const folder of [next, previous]) rmSync(folder, { recursive: true, force: true })
}
