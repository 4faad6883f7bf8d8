import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from './environment.ts'
import { credentials, homeVariables, temporaryFolder } from './run.ts'

interface World {
  /** Added to the bare environment, HOME and credentials; `undefined` removes a variable. */
  env?: Record<string, string | undefined>
  stdin?: string
  cwd?: string
  /** As a user for whom mode bits mean something. Only root can do that; anyone else is such a user. */
  isNobody?: boolean
  /** A command that runs what follows it: `unshare -m`. */
  within?: string[]
  /** Run by the shell before, in the same process: `umask 0`. */
  before?: string
  /** Takes the place of this Node and the program that was built here. */
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
export const nobody = 65534
const asNobody = ['setpriv', '--clear-groups', `--reuid=${nobody}`, `--regid=${nobody}`]

/** Whether a command of the system's is there, and does what it is needed for. */
export const canRun = (command: string, ...words: string[]): boolean =>
  spawnSync(command, words, { stdio: 'ignore' }).status === 0

/** A folder of its own for a home, which an unprivileged user can also use. */
export function home(): string {
  const folder = temporaryFolder()
  chmodSync(folder, 0o755)
  if (isRoot) chownSync(folder, nobody, nobody)
  return folder
}

/** Where compiled code is kept, so that it does not stand among a test's files. */
const cache = temporaryFolder()

let copy = ''

/** What runs the program as such a user: from a copy, for the folder that it was built in may be root's alone. */
export function programAsNobody(): string[] {
  if (!isRoot) return [process.execPath, binary]
  if (copy === '') {
    copy = temporaryFolder()
    execFileSync('cp', ['-R', join(binary, '..'), join(binary, '../../dist'), copy])
    execFileSync('chmod', ['-R', 'a+rX', copy])
  }
  return [...asNobody, process.execPath, join(copy, 'bin/parley.cjs')]
}

/** Whether it runs: not where Node or the temporary folder is root's alone, nor in a container without the right. */
export function canBeNobody(): boolean {
  const [command = '', ...words] = programAsNobody()
  return canRun(command, ...words, '--version')
}

/** Starts the built program. */
export function start(argv: string[], world: World = {}): Started {
  const cwd = world.cwd ?? temporaryFolder()
  const parley = world.program ?? (world.isNobody ? programAsNobody() : [process.execPath, binary])
  const program = [...(world.within ?? []), ...parley, ...argv]
  const [command = '', ...words] = world.before
    ? ['sh', '-c', `${world.before}; exec "$@"`, 'sh', ...program]
    : program
  const child = spawn(command, words, {
    cwd,
    env: {
      ...childEnvironment,
      ...homeVariables(cwd),
      XDG_CACHE_HOME: cache,
      LOCALAPPDATA: cache,
      ...credentials,
      ...world.env,
    },
    stdio: [world.stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  child.stdin?.on('error', () => {})
  child.stdin?.end(world.stdin)
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

export const execute = (argv: string[], world?: World): Promise<Ended> => start(argv, world).ended
