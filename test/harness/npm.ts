import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Runs npm in the project's folder without network. Returns its output. */
export const npm = (...words: string[]): string =>
  execFileSync('npm', [...words, '--silent', '--offline'], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  }).trim()

/** Packs the built package as for publishing, unless a package is given. Returns the tarball's path. */
export function pack(folder: string): string {
  if (process.env.TEST_TARBALL) return process.env.TEST_TARBALL
  // The package is built already, and other tests run the built files.
  return join(folder, npm('pack', '--ignore-scripts', '--pack-destination', folder))
}
