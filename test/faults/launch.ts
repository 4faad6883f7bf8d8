import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { delimiter, join, relative } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { homeVariables, temporaryFolder } from '../harness/run.ts'

const parley = join(import.meta.dirname, '../../bin/parley.cjs')
const preload = join(import.meta.dirname, 'preload.cjs')

/** Secrets in every run's environment. Only the service may receive them. */
export const canaries = { token: 'canary-token-5f3a9c', key: 'canary-key-77b1e0' }

export interface Launch {
  argv: string[]
  /** Command line for bash, used instead of `argv`. `parley` is on its PATH. */
  shell?: string
  /** Content of stdin. `open` is a pipe without input or end. If omitted, stdin is /dev/null. */
  stdin?: string | Uint8Array | { open: true }
  env?: Record<string, string>
}

export interface Ending {
  code: number | NodeJS.Signals
  out: Buffer
  err: string
  seconds: number
  /** Peak memory in MiB. */
  memory: number
  /** Contents of the files in the run's folders afterwards, by path from `home`, `cwd` or `tmp`. */
  files: Map<string, string>
}

export interface RunningCommand {
  folder: string
  cwd: string
  child: ChildProcess
  out(): Buffer
  err(): string
  ended: Promise<Ending>
}

/** Compile cache shared by all processes, so that each starts faster. */
const cache = temporaryFolder()

/**
 * Time limit for a run that hangs; other runs never need as much. In a proof it is shorter than the time
 * limit of the proof.
 */
const hardStopMs = process.env.TEST_PROOF ? 12_000 : 120_000

/** Folders of earlier runs for later ones. Creating and removing folders can take longer than a run. */
const unchangedFolders: string[] = []

/** Makes an empty home, working and temporary folder. */
export function makeFolders(): string {
  const unchanged = unchangedFolders.pop()
  if (unchanged !== undefined) return unchanged
  const folder = temporaryFolder()
  for (const name of ['home', 'cwd', 'tmp', 'bin']) mkdirSync(join(folder, name))
  // Windows has no shell that would use the link, and links need a privilege there.
  if (process.platform !== 'win32') symlinkSync(parley, join(folder, 'bin/parley'))
  return folder
}

/**
 * Returns the environment of a run: the common one of all tests, the secrets above, and the given variables.
 */
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

/** Starts the built command in a folder of `makeFolders`. */
export function launch({ argv, shell, stdin, env }: Launch, folder: string): RunningCommand {
  const start = performance.now()
  const cwd = join(folder, 'cwd')
  const [command, args] =
    shell === undefined ? [process.execPath, [parley, ...argv]] : ['bash', ['-c', shell]]
  const child = spawn(command, args, {
    cwd,
    // Windows opens a window for a detached process.
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
      // The process group has already ended.
    }
  }
  const timer = setTimeout(endGroup, hardStopMs)

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

/** Retries, because Windows locks the folder of a process for a moment after its end. */
export const removeFolder = (folder: string) =>
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })

/** Removes the folder of a run that has ended, unless the run and its preparation have changed nothing. */
export function releaseFolder(folder: string): void {
  const isUnchanged = ['home', 'cwd', 'tmp'].every((name) => {
    const path = join(folder, name)
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0
    return (mode & 0o7777) === 0o755 && readdirSync(path).length === 0
  })
  if (isUnchanged) unchangedFolders.push(folder)
  else removeFolder(folder)
}

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
      // Compiled code is not a result of the run.
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('/.cache/parley'))
      .map((entry) => join(entry.parentPath, entry.name)),
  )
  const nameOf = (file: string) => relative(folder, file).replaceAll('\\', '/')
  return new Map(files.map((file) => [nameOf(file), readFileSync(file, 'latin1')]))
}
