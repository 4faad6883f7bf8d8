import { fstatSync, type Stats, writeSync } from 'node:fs'
import { CliError } from '../errors.ts'

/** What is known of an open file. Throws a `CliError` if it is not a regular one; Windows opens a folder too. */
export function requireRegular(file: number, name: string): Stats {
  const stat = fstatSync(file)
  const kind = stat.isDirectory() ? 'a folder' : 'no regular file'
  if (!stat.isFile()) throw new CliError('file', `${name}: it is ${kind}`)
  return stat
}

/** Writes every byte to an open file, at its end or where the last write ended. Throws what the file system throws. */
export function writeAll(file: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes.subarray(written))
}
