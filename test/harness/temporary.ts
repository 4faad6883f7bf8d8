import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Gives all tests one folder for what they leave behind, in which other users can write, and removes it at the end. */
export default function makeTemporary(): () => void {
  // On macOS the way to the temporary folder is a link, and parley tells where files really are.
  const folder = mkdtempSync(join(realpathSync.native(tmpdir()), 'parley-tests-'))
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  process.env.TEMP = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
}
