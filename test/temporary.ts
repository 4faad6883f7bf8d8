import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Gives all tests one folder for what they leave behind, which other users can enter, and removes it at the end. */
export default function makeTemporary(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'parley-tests-'))
  chmodSync(folder, 0o755)
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
