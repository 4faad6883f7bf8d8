import { renameSync } from 'node:fs'
import { platform } from 'node:os'

/** What Windows says while a virus scanner or an indexer has one of the two files open. Elsewhere these do not pass. */
const passing = ['EPERM', 'EACCES', 'EBUSY']

/** The last of the waits, which double from 10. Milliseconds. */
const longest = 80

/** Renames a file, over another; what may pass in a moment is tried again. Throws what the file system throws. */
export function renameFile(path: string, target: string): void {
  for (let pause = 10; ; pause *= 2) {
    try {
      renameSync(path, target)
      return
    } catch (error) {
      const mayPass = platform() === 'win32' && passing.includes((error as NodeJS.ErrnoException).code ?? '')
      if (!mayPass || pause > longest) throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause)
    }
  }
}
