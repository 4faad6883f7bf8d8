import { ftruncateSync, truncateSync, writeSync } from 'node:fs'

/**
 * Adds all of it to a file of this size, or nothing: in one write, but where a disk is full, and the next one then says
 * so. Throws what the file system throws.
 */
export function appendWhole(
  file: number,
  path: string,
  { bytes, size }: { bytes: Uint8Array; size: number },
): void {
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes.subarray(written))
  } catch (error) {
    cut(file, path, size)
    throw error
  }
}

/** Makes an open file shorter. */
export function cut(file: number, path: string, size: number): void {
  try {
    ftruncateSync(file, size)
  } catch (error) {
    // Windows refuses it for a file that was opened to be added to.
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
    truncateSync(path, size)
  }
}
