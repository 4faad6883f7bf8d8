import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Runs npm in the project's folder, away from the network; returns what it prints. */
export const npm = (...words: string[]): string =>
  execFileSync('npm', [...words, '--silent', '--offline'], {
    cwd: join(import.meta.dirname, '../..'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  }).trim()

/** Packs what is built as it would be published, unless there is one to try; returns the tarball's path. */
export function pack(folder: string): string {
  if (process.env.TEST_TARBALL) return process.env.TEST_TARBALL
  // Built it is already, and other tests run what was built.
  return join(folder, npm('pack', '--ignore-scripts', '--pack-destination', folder))
}
