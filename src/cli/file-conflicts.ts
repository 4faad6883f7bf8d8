import { statSync } from 'node:fs'
import type { Option } from 'commander'
import { FileArgument, FileFlag, HeaderFlag, TextFlag } from '../argv/flags.ts'
import type { Host } from '../basic-context.ts'
import { usageError } from '../errors.ts'
import { resolveRealPath, toAbsolutePath } from '../io/paths.ts'
import { findProfilePath } from '../settings/profile-file.ts'
import type { GivenFlag } from './flags.ts'
import type { ParleyCommand } from './parley-command.ts'

interface NamedFile {
  /** Name in messages: a flag, an argument, or a phrase such as `the file that stdin reads`. */
  about: string
  isWritten: boolean
  /**
   * Real path of a regular or missing file, or an empty name. `undefined` for a device or a pipe, which two
   * flags may share.
   */
  identity: string | undefined
}

/**
 * Describes two flags that name the same file if one of them would overwrite it. Also compares the profile
 * file and the files on stdin and stdout. As an exception, `-o` may replace a file of `-f`. In a command with
 * the flag `--force`, the exception requires `--force`. Throws a usage error for an empty name, but only after
 * the comparison, because a conflict also prevents the report.
 */
export function describeFileConflict(commands: ParleyCommand[], host: Host): string | undefined {
  const called = commands.at(-1) as ParleyCommand
  const given = commands.flatMap((command) => command.given)
  const has = (wanted: string) => given.some(({ flag }) => flag === wanted)
  const mayReplace = has('--force') || !called.options.some(({ long }) => long === '--force')
  const named = [...findArguments(called, host), ...findFlags(given, host)]
  const implicit = findImplicitFiles(host, !has('--no-stdin'))
  for (const [index, file] of named.entries()) {
    for (const other of [...named.slice(0, index), ...implicit]) {
      if (!file.identity || file.identity !== other.identity) continue
      if (!(file.isWritten || other.isWritten)) continue
      const isReplaced = [file, other].every(({ about }) => ['-f', '-o'].includes(about))
      if (isReplaced && mayReplace) continue
      return `${other.about} and ${file.about} are the same file${isReplaced ? ' (--force replaces it)' : ''}`
    }
  }
  const unnamed = named.find(({ identity }) => identity === '')
  if (unnamed) throw usageError(`${unnamed.about}: the name of a file is empty: is a variable unset?`)
  return undefined
}

const findArguments = ({ registeredArguments, args }: ParleyCommand, host: Host): NamedFile[] =>
  registeredArguments.map((argument, index) => ({
    about: argument.name().toUpperCase(),
    isWritten: false,
    identity: argument instanceof FileArgument ? identify(host, args[index]) : undefined,
  }))

const findFlags = (given: GivenFlag[], host: Host): NamedFile[] =>
  given.map(({ option, flag, value }, index) => {
    const isWritten = option instanceof FileFlag && option.use !== 'reads'
    // If a flag is repeated, only its last file is written.
    const isReplaced = isWritten && given.slice(index + 1).some((later) => later.flag === flag)
    const identity = isReplaced ? undefined : identify(host, getFileName(option, value))
    return { about: option.short ?? flag, isWritten, identity }
  })

function getFileName(option: Option, value = ''): string | undefined {
  if (option instanceof FileFlag) return value
  const name = option instanceof HeaderFlag ? /^[^@:]*:\s*/ : option.flags.includes('=') ? /^[^=]*=/ : ''
  const text = value.replace(name, '')
  return option instanceof TextFlag && /^@(?!@)/.test(text) ? text.slice(1) : undefined
}

const findImplicitFiles = (host: Host, readsStdin: boolean): NamedFile[] =>
  [
    { about: 'the profile file', name: findProfilePath(host), isWritten: false },
    { about: 'the file that stdin reads', name: readsStdin ? '/dev/stdin' : '-', isWritten: false },
    { about: 'the file that receives stdout', name: '/dev/stdout', isWritten: true },
  ].map(({ name, ...file }) => ({ ...file, identity: identify(host, name) }))

function identify(host: Host, name = '-'): string | undefined {
  if (name === '') return name
  if (name === '-') return undefined
  const path = toAbsolutePath(host, name)
  try {
    if (!statSync(path).isFile()) return undefined
  } catch {
    // A file that cannot be examined is compared by its path.
  }
  const realPath = resolveRealPath(path)
  // Windows and macOS usually ignore case, so two paths that differ in case may be the same file.
  return host.platform === 'win32' || host.platform === 'darwin' ? realPath.toLowerCase() : realPath
}
