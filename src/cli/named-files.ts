import { statSync } from 'node:fs'
import type { Option } from 'commander'
import { FileArgument, FileFlag, TextFlag } from '../argv/flags.ts'
import type { Host } from '../context.ts'
import { absolutePath, isOpenDescriptor, resolveRealPath } from '../io/paths.ts'
import { profilePath } from '../settings/profile-file.ts'
import type { Given } from './flags.ts'
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
  const called = commands.at(-1) as ParleyCommand
  const given = commands.flatMap((command) => command.given)
  const has = (wanted: string) => given.some(({ flag }) => flag === wanted)
  const mayReplace = has('--force') || !called.options.some(({ long }) => long === '--force')
  const named = [...findArguments(called, host), ...findFlags(given, host)]
  const others = findOthers(host, !has('--no-stdin'))
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

const findArguments = ({ registeredArguments, args }: ParleyCommand, host: Host): NamedFile[] =>
  registeredArguments.map((argument, index) => ({
    about: argument.name().toUpperCase(),
    isWritten: false,
    identity: argument instanceof FileArgument ? identify(host, args[index]) : undefined,
  }))

const findFlags = (given: Given[], host: Host): NamedFile[] =>
  given.map(({ option, flag, value }, index) => {
    const isWritten = option instanceof FileFlag && option.use !== 'reads'
    // Only the last of them is written.
    const isReplaced = isWritten && given.slice(index + 1).some((later) => later.flag === flag)
    const identity = isReplaced ? undefined : identify(host, nameIn(option, value))
    return { about: option.short ?? flag, isWritten, identity }
  })

/** The name of a file in the value of a flag, if there is one. */
function nameIn(option: Option, value = ''): string | undefined {
  if (option instanceof FileFlag) return value
  const text = option.flags.includes('=') ? value.slice(value.indexOf('=') + 1) : value
  return option instanceof TextFlag && /^@(?!@)/.test(text) ? text.slice(1) : undefined
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

function identify(host: Host, name = '-'): string | undefined {
  if (name === '' || name === '-') return undefined
  const path = absolutePath(host, name)
  try {
    if (isOpenDescriptor(path) || !statSync(path).isFile()) return undefined
  } catch {
    // What cannot be looked at can still be named twice.
  }
  const place = resolveRealPath(path)
  // There upper and lower case are one.
  return host.platform === 'win32' || host.platform === 'darwin' ? place.toLowerCase() : place
}
