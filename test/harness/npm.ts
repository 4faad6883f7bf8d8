import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Runs npm in the project's folder without network, and returns its output. */
export const npm = (...words: string[]): string =>
  execFileSync('npm', [...words, '--silent', '--offline'], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  }).trim()

/**
 * Packs the built package as for publishing. Returns the path of the tarball, or TEST_TARBALL if it is set.
 */
export function pack(folder: string): string {
  if (process.env.TEST_TARBALL) return process.env.TEST_TARBALL
  // Without --ignore-scripts, npm would build the files again while other tests run them.
  return join(folder, npm('pack', '--ignore-scripts', '--pack-destination', folder))
}
