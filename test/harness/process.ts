import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { childEnvironment } from './environment.ts'
import { credentials, homeVariables, temporaryFolder } from './run.ts'

interface ProcessOptions {
  /** Variables in addition to PATH, HOME and credentials. `undefined` removes a variable. */
  env?: Record<string, string | undefined>
  stdin?: string
  cwd?: string
  /** Runs as the user nobody. File modes do not limit root. Only root can switch to that user. */
  isNobody?: boolean
  /** Command that runs parley's command line, such as `unshare -m`. */
  within?: string[]
  /** Shell code that runs before parley in the same process, such as `umask 0`. */
  before?: string
  /** Command that runs instead of Node with the built program. */
  program?: string[]
}

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  out: string
  err: string
}

export interface Started {
  child: ChildProcess
  ended: Promise<Ended>
}

export const binary = join(import.meta.dirname, '../../bin/parley.cjs')

export const isRoot = process.getuid?.() === 0
const nobodyId = 65534
const asNobody = ['setpriv', '--clear-groups', `--reuid=${nobodyId}`, `--regid=${nobodyId}`]

/** Returns whether a system command exists and works. */
export const canRun = (command: string, ...words: string[]): boolean =>
  spawnSync(command, words, { stdio: 'ignore' }).status === 0

/** Folder for compiled code, separate from the files of a test. */
const cache = temporaryFolder()

let copy = ''

/**
 * Returns the command that runs a copy of the program as the user nobody. That user may not be able to read
 * the built folder.
 */
export function copyProgramForNobody(): string[] {
  if (!isRoot) return [process.execPath, binary]
  if (copy === '') {
    copy = temporaryFolder()
    execFileSync('cp', ['-R', join(binary, '..'), join(binary, '../../dist'), copy])
    execFileSync('chmod', ['-R', 'a+rX', copy])
  }
  return [...asNobody, process.execPath, join(copy, 'bin/parley.cjs')]
}

/**
 * Returns whether the user nobody can run the program. Node and the temporary folder must be readable. A
 * container must allow switching the user.
 */
export function canRunAsNobody(): boolean {
  const [command = '', ...words] = copyProgramForNobody()
  return canRun(command, ...words, '--version')
}

/** Starts the built program. */
export function start(argv: string[], options: ProcessOptions = {}): Started {
  const cwd = options.cwd ?? temporaryFolder()
  const parley = options.program ?? (options.isNobody ? copyProgramForNobody() : [process.execPath, binary])
  const program = [...(options.within ?? []), ...parley, ...argv]
  const [command = '', ...words] = options.before
    ? ['sh', '-c', `${options.before}; exec "$@"`, 'sh', ...program]
    : program
  const child = spawn(command, words, {
    cwd,
    env: {
      ...childEnvironment,
      ...homeVariables(cwd),
      XDG_CACHE_HOME: cache,
      LOCALAPPDATA: cache,
      ...credentials,
      ...options.env,
    },
    stdio: [options.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {})
  child.stdin?.end(options.stdin)
  let out = ''
  let err = ''
  child.stdout?.on('data', (chunk) => {
    out += chunk
  })
  child.stderr?.on('data', (chunk) => {
    err += chunk
  })
  return {
    child,
    ended: new Promise((resolve) => {
      child.on('close', (code, signal) => resolve({ code, signal, out, err }))
    }),
  }
}

export const execute = (argv: string[], options?: ProcessOptions): Promise<Ended> =>
  start(argv, options).ended
