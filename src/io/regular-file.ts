import { fstatSync, type Stats } from 'node:fs'
import { CliError } from '../errors.ts'

/** What is known of an open file. Throws a `CliError` where it is no regular one; Windows opens a folder too. */
export function requireRegular(file: number, name: string): Stats {
  const stat = fstatSync(file)
  const kind = stat.isDirectory() ? 'a folder' : 'no regular file'
  if (!stat.isFile()) throw new CliError('file', `${name}: it is ${kind}`)
  return stat
}
