import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'
import { homeVariables, temporaryFolder } from '../harness/run.ts'

const preload = join(import.meta.dirname, 'preload.cjs')

/** Secrets in the environment of every run. Only the service may receive them. */
export const canarySecrets = { token: 'canary-token-5f3a9c', key: 'canary-key-77b1e0' }

export interface LaunchOptions {
  argv: string[]
  /** Command line for bash, which runs instead of `argv`. It may use `parley` as a command. */
  shell?: string
  /** Content of stdin. `{ open: true }` is a pipe without input or end. If omitted, stdin is /dev/null. */
  stdin?: string | Uint8Array | { open: true }
  env?: Record<string, string>
}

export interface CommandResult {
  code: number | NodeJS.Signals
  out: Buffer
  err: string
  seconds: number
  peakMiB: number
  /** Contents of the files after the run, by their path in the run's folder, such as `cwd/a.txt`. */
  files: Map<string, string>
}

export interface RunningCommand {
  cwd: string
  child: ChildProcess
  out(): Buffer
  err(): string
  ended: Promise<CommandResult>
  /** Waits until the condition is true or the command has ended. */
  waitUntil(isReached: () => boolean): Promise<void>
}

export const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Folder of compiled code that all processes share, so that each starts faster. */
const cache = temporaryFolder()

/**
 * Time after which a hanging run is killed. With TEST_PROOF, it is shorter than the time limit of a test, so
 * no process outlives its test.
 */
const hardStopMs = process.env.TEST_PROOF ? 12_000 : 120_000

/** Unchanged folders of earlier runs, for reuse. Creating and removing folders can take longer than a run. */
const unchangedFolders: string[] = []

/** Returns a folder with an empty home, working and temporary folder. */
export function makeRunFolder(): string {
  const unchanged = unchangedFolders.pop()
  if (unchanged !== undefined) return unchanged
  const folder = temporaryFolder()
  for (const name of ['home', 'cwd', 'tmp', 'bin']) mkdirSync(join(folder, name))
  // On Windows no row uses a shell, so the link is not needed. Creating it would need a privilege there.
  if (process.platform !== 'win32') symlinkSync(binary, join(folder, 'bin/parley'))
  return folder
}

/** Returns the environment of a run: the environment of all tests, secrets, and the given variables. */
export const createEnvironment = (
  folder: string,
  more: LaunchOptions['env'],
): Record<string, string | undefined> => ({
  ...childEnvironment,
  PATH: join(folder, 'bin') + delimiter + childEnvironment.PATH,
  ...homeVariables(join(folder, 'home')),
  TMPDIR: join(folder, 'tmp'),
  PARLEY_ACCESS_TOKEN: canarySecrets.token,
  PARLEY_API_KEY: canarySecrets.key,
  PARLEY_SESSION: 'sesn_1',
  ...more,
})

/** Starts the built program in a folder from `makeRunFolder`. */
export function launchParley({ argv, shell, stdin, env }: LaunchOptions, folder: string): RunningCommand {
  const start = performance.now()
  const cwd = join(folder, 'cwd')
  const [command, args] =
    shell === undefined ? [process.execPath, [binary, ...argv]] : ['bash', ['-c', shell]]
  const child = spawn(command, args, {
    cwd,
    // A detached process has its own process group, which can be killed. On Windows it would open a window.
    detached: process.platform !== 'win32',
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: {
      NODE_OPTIONS: `--require ${JSON.stringify(preload)}`,
      TEST_PEAK: join(folder, 'peak'),
      ...createEnvironment(folder, { XDG_CACHE_HOME: cache, LOCALAPPDATA: cache, ...env }),
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
      // The process group has already ended.
    }
  }
  const timer = setTimeout(endGroup, hardStopMs)

  const out = () => Buffer.concat(chunks.out)
  const err = () => Buffer.concat(chunks.err).toString()
  const ended = new Promise<CommandResult>((resolve) => {
    let seconds = 0
    child.once('exit', () => {
      seconds = (performance.now() - start) / 1000
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      endGroup()
      const peakMiB = readPeakMiB(folder)
      const files = readRunFiles(folder)
      resolve({ code: code ?? signal ?? -1, out: out(), err: err(), seconds, peakMiB, files })
      removeFolder(folder)
    })
  })
  const waitUntil = async (isReached: () => boolean) => {
    while (!isReached() && child.exitCode === null && child.signalCode === null) await pause(10)
  }
  return { cwd, child, out, err, ended, waitUntil }
}

/** Removes a folder. Retries, because Windows locks the folder of a process for a moment after its end. */
const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })

/** Keeps the folder of a run for a later run if nothing in it has changed. Otherwise removes it. */
export function recycleFolder(folder: string): void {
  const isUnchanged = ['home', 'cwd', 'tmp'].every((name) => {
    const path = join(folder, name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o7777) === 0o755 && readdirSync(path).length === 0
  })
  if (isUnchanged) unchangedFolders.push(folder)
  else removeFolder(folder)
}

function readPeakMiB(folder: string): number {
  try {
    return Number(readFileSync(join(folder, 'peak'), 'utf8')) / 1024
  } catch {
    return 0
  }
}

/** Returns the contents of the files in the folder of a run, by path, such as `cwd/a.txt`. */
export function readRunFiles(folder: string): Map<string, string> {
  const files = ['home', 'cwd', 'tmp'].flatMap((place) =>
    readdirSync(join(folder, place), { recursive: true, withFileTypes: true, encoding: 'utf8' })
      // Compiled code is not a result of the run.
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('/.cache/parley'))
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  const nameOf = (file: string) => relative(folder, file).replaceAll('\\', '/')
  return new Map(files.map((file) => [nameOf(file), readFileSync(file, 'latin1')]))
}
