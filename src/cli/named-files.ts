import { statSync } from 'node:fs'
import { FileArgument, FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host } from '../context.ts'
import { absolutePath, isDescriptor, realPlace } from '../io/paths.ts'
import { profilePath } from '../settings/profile-file.ts'
import type { ParleyCommand } from './parley-command.ts'

/** A file that a run reads or writes. */
interface NamedFile {
  /** The flag or the argument that names it, or which file it is. */
  about: string
  isWritten: boolean
  /** The real path of a regular file, or of one that may be made; absent for a device, a pipe or an open descriptor. */
  identity: string | undefined
}

/**
 * Says which two flags name one file, if one of them writes it: the other's file would be lost. Only -o may name a file of
 * -f, if it may replace files. The profile file, and a regular file on stdin or stdout, count as if a flag named them.
 * `commands` goes from the root to the command that was called.
 */
export function findClash(commands: ParleyCommand[], host: Host): string | undefined {
  const given = new Set(commands.flatMap((command) => command.given.map(({ option }) => option.long)))
  const named = findNamed(commands, host)
  const others = findOthers(host, !given.has('--no-stdin'))
  const needsForce = commands.at(-1)?.options.some(({ long }) => long === '--force')
  const mayReplace = !needsForce || given.has('--force')
  for (const [index, file] of named.entries()) {
    for (const other of [...named.slice(0, index), ...others]) {
      if (file.identity === undefined || file.identity !== other.identity) continue
      const isReplaced = mayReplace && [file, other].every(({ about }) => ['-f', '-o'].includes(about))
      if (isReplaced || !(file.isWritten || other.isWritten)) continue
      return `${other.about} and ${file.about} are the same file`
    }
  }
  return undefined
}

/** The files of the arguments and of the flags that were given, in the order in which these are declared. */
function findNamed(commands: ParleyCommand[], host: Host): NamedFile[] {
  const called = commands.at(-1)
  const read = (called?.registeredArguments ?? []).flatMap((argument, index) => {
    const name = called?.args[index]
    if (!(argument instanceof FileArgument) || name === undefined || name === '-') return []
    return [{ about: argument.name().toUpperCase(), isWritten: false, identity: identify(host, name) }]
  })
  const flagged = (called?.options ?? []).flatMap((flag) => {
    if (!(flag instanceof FileFlag || flag instanceof TextFlag)) return []
    const values = commands.flatMap(({ given }) =>
      given.flatMap(({ option, value }) => (option.long === flag.long ? [value] : [])),
    )
    const about = flag.short ?? flag.long ?? ''
    const isWritten = flag instanceof FileFlag && flag.use !== 'reads'
    // Of a flag that cannot be repeated the last value counts.
    const isRepeatable = flag instanceof TextFlag || flag.parseArg !== undefined
    return (isRepeatable ? values : values.slice(-1))
      .map((value) => nameIn(flag, value))
      .filter((name) => name !== '' && name !== '-')
      .map((name) => ({ about, isWritten, identity: identify(host, name) }))
  })
  return [...read, ...flagged]
}

/** The name of a file in the value of a flag; empty if there is none. */
function nameIn(flag: FileFlag | TextFlag, value: string): string {
  if (flag instanceof FileFlag) return value
  const text = flag.flags.includes('=') ? value.slice(value.indexOf('=') + 1) : value
  return text.startsWith('@') && !text.startsWith('@@') ? text.slice(1) : ''
}

function findOthers(host: Host, readsStdin: boolean): NamedFile[] {
  const path = profilePath(host)
  const profile = path === undefined ? undefined : identify(host, path)
  return [
    { about: 'the profile file', isWritten: false, identity: profile },
    { about: 'the file on stdin', isWritten: false, identity: readsStdin ? host.stdin.file : undefined },
    { about: 'the file on stdout', isWritten: true, identity: host.stdout.file },
  ]
}

function identify(host: Host, name: string): string | undefined {
  const path = absolutePath(host, name)
  try {
    if (isDescriptor(path) || !statSync(path).isFile()) return undefined
  } catch {
    // What cannot be looked at can still be named twice.
  }
  const place = realPlace(path)
  // There upper and lower case are one.
  return host.platform === 'win32' || host.platform === 'darwin' ? place.toLowerCase() : place
}
