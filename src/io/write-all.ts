import { writeSync } from 'node:fs'

/** Writes every byte to an open file, at its end or where the last write ended. Throws what the file system throws. */
export function writeAll(file: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes.subarray(written))
}
