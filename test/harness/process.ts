import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { onTestFinished, TestRunner } from 'vitest'
import { childEnvironment } from './environment.ts'
import { credentials, homeVariables, temporaryFolder } from './run.ts'

interface ProcessOptions {
  /** Variables in addition to the default ones. The value `undefined` removes a variable. */
  env?: Record<string, string | undefined>
  stdin?: string
  cwd?: string
  /** True to run as the user nobody if the tests run as root, because file modes do not limit root. */
  isNobody?: boolean
  /** Command that starts parley, such as `unshare -m`. */
  within?: string[]
  /** Shell command that changes the process before parley starts in it, such as `umask 0`. */
  before?: string
  /** Command that runs instead of the built program. */
  program?: string[]
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  out: string
  err: string
}

export interface StartedProcess {
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

/** Folder of compiled code that all processes share, so that each starts faster. */
const cache = temporaryFolder()

let copy = ''

/**
 * Returns the command that runs the program as the user nobody. That user may have no access to the built
 * files, so this function copies the program first.
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
 * Returns whether the user nobody can run the program. Returns false if this user may not read Node's
 * folder, or if a container does not allow switching the user.
 */
export function canRunAsNobody(): boolean {
  const [command = '', ...words] = copyProgramForNobody()
  return canRun(command, ...words, '--version')
}

/** Starts the built program. */
export function start(argv: string[], options: ProcessOptions = {}): StartedProcess {
  const cwd = options.cwd ?? temporaryFolder()
  const parley = options.program ?? (options.isNobody ? copyProgramForNobody() : [process.execPath, binary])
  const program = [...(options.within ?? []), ...parley, ...argv]
  const before = options.before ? ['sh', '-c', `${options.before}; exec "$@"`, 'sh'] : []
  const [command = '', ...words] = [...before, ...program]
  const own = { ...homeVariables(cwd), XDG_CACHE_HOME: cache, LOCALAPPDATA: cache, ...credentials }
  const child = spawn(command, words, {
    cwd,
    env: { ...childEnvironment, ...own, ...options.env },
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

/** Returns the variable that makes a started process run this code first. */
export const preloading = (code: string) => {
  const file = join(temporaryFolder({ 'preload.cjs': code }), 'preload.cjs')
  return { NODE_OPTIONS: `--require ${JSON.stringify(file)}` }
}

export const execute = (argv: string[], options?: ProcessOptions) => start(argv, options).ended

export interface StartedEmulator {
  child: ChildProcess
  port: number
  baseUrl: string
  accessToken: string
  /** Variables of a run that uses this emulator. */
  env: Record<string, string>
  /** Returns the text that the emulator has printed on stderr so far. */
  log(): string
}

/** Starts the built `parley serve` and reads its startup line. A test ends the process at its end, a hook does not. */
export async function startEmulator(argv: string[] = [], options?: ProcessOptions): Promise<StartedEmulator> {
  const { child } = start(['serve', ...argv], options)
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stderr?.on('data', (chunk) => {
    log += chunk
  })
  const [line] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  const { baseUrl, agentsUrl, accessToken, apiKey } = JSON.parse(String(line))
  return {
    child,
    port: Number(new URL(baseUrl).port),
    baseUrl,
    accessToken,
    env: {
      PARLEY_BASE_URL: baseUrl,
      PARLEY_ACCESS_TOKEN: accessToken,
      PARLEY_AGENTS_URL: agentsUrl,
      PARLEY_API_KEY: apiKey,
    },
    log: () => log,
  }
}
