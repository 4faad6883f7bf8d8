import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { homeVariables, temporaryFolder } from '../harness/run.ts'

const parley = join(import.meta.dirname, '../../bin/parley.cjs')
const preload = join(import.meta.dirname, 'preload.cjs')

/** Stand in every run's environment, and must be seen by the service alone. */
export const canaries = { token: 'canary-token-5f3a9c', key: 'canary-key-77b1e0' }

export interface Launch {
  argv: string[]
  /** Run by bash instead, where `parley` is the command. */
  shell?: string
  /** Text and then the end; `open` for a pipe on which nothing ever comes; by default /dev/null. */
  stdin?: string | Uint8Array | { open: true }
  env?: Record<string, string>
}

export interface Ending {
  code: number | NodeJS.Signals
  out: Buffer
  err: string
  seconds: number
  /** MiB. */
  memory: number
  /** What lies in the run's folders afterwards: paths from `home`, `cwd` and `tmp`. */
  files: Map<string, string>
}

export interface World {
  folder: string
  cwd: string
  child: ChildProcess
  out(): Buffer
  err(): string
  ended: Promise<Ending>
}

/** What the program compiled is kept here for all processes, so that each starts sooner. */
const cache = temporaryFolder()

/** What hangs is stopped then, long after any machine is done with what does not; in a proof, before it is given up. Milliseconds. */
const hardStop = process.env.TEST_PROOF ? 12_000 : 120_000

/** Makes a home, a working and a temporary folder, which are empty. */
export function makeFolders(): string {
  const folder = temporaryFolder()
  for (const name of ['home', 'cwd', 'tmp', 'bin']) mkdirSync(join(folder, name))
  // On Windows there is no shell that would look for it, and not everybody may make a link.
  if (process.platform !== 'win32') symlinkSync(parley, join(folder, 'bin/parley'))
  return folder
}

/** What a run in a folder of `makeFolders` has in its environment: little, and what it is given. */
export const environment = (folder: string, more: Launch['env']): Record<string, string | undefined> => ({
  ...childEnvironment,
  PATH: join(folder, 'bin') + delimiter + childEnvironment.PATH,
  ...homeVariables(join(folder, 'home')),
  TMPDIR: join(folder, 'tmp'),
  PARLEY_ACCESS_TOKEN: canaries.token,
  PARLEY_API_KEY: canaries.key,
  PARLEY_SESSION: 'sesn_1',
  ...more,
})

/** Starts the built command in a folder of `makeFolders`, with nothing in its environment but what is given. */
export function launch({ argv, shell, stdin, env }: Launch, folder: string): World {
  const start = performance.now()
  const cwd = join(folder, 'cwd')
  const [command, args] =
    shell === undefined ? [process.execPath, [parley, ...argv]] : ['bash', ['-c', shell]]
  const child = spawn(command, args, {
    cwd,
    // Windows would open a window for it.
    detached: process.platform !== 'win32',
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: {
      NODE_OPTIONS: `--require ${JSON.stringify(preload)}`,
      TEST_PEAK: join(folder, 'peak'),
      ...environment(folder, { XDG_CACHE_HOME: cache, LOCALAPPDATA: cache, ...env }),
    },
  })
  child.stdin?.on('error', () => {})
  if (typeof stdin === 'string' || stdin instanceof Uint8Array) child.stdin?.end(stdin)
  const chunks = { out: [] as Buffer[], err: [] as Buffer[] }
  child.stdout?.on('data', (chunk) => chunks.out.push(chunk))
  child.stderr?.on('data', (chunk) => chunks.err.push(chunk))
  const endGroup = () => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {
      // Nobody of the group is left.
    }
  }
  const timer = setTimeout(endGroup, hardStop)

  const out = () => Buffer.concat(chunks.out)
  const err = () => Buffer.concat(chunks.err).toString()
  const ended = new Promise<Ending>((resolve) => {
    let seconds = 0
    child.once('exit', () => {
      seconds = (performance.now() - start) / 1000
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      endGroup()
      const files = readFiles(folder)
      resolve({
        code: code ?? signal ?? -1,
        out: out(),
        err: err(),
        seconds,
        memory: readPeak(folder),
        files,
      })
      removeFolder(folder)
    })
  })
  return { folder, cwd, child, out, err, ended }
}

/** Windows keeps the folder of a process for a moment after its end. */
export const removeFolder = (folder: string) =>
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })

function readPeak(folder: string): number {
  try {
    return Number(readFileSync(join(folder, 'peak'), 'utf8')) / 1024
  } catch {
    return 0
  }
}

export function readFiles(folder: string): Map<string, string> {
  const files = ['home', 'cwd', 'tmp'].flatMap((place) =>
    readdirSync(join(folder, place), { recursive: true, withFileTypes: true, encoding: 'utf8' })
      // Compiled code is kept for the next run.
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('/.cache/parley'))
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  const nameOf = (file: string) => relative(folder, file).replaceAll('\\', '/')
  return new Map(files.map((file) => [nameOf(file), readFileSync(file, 'latin1')]))
}
