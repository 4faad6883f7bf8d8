import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'

/** System calls that create or change a file. */
const changing = [
  'openat',
  'write',
  'pwrite64',
  'writev',
  'fsync',
  'fdatasync',
  'ftruncate',
  'rename',
  'link',
  'unlink',
  'mkdir',
]

/** Errors that the system may return for each call. */
const failures: Record<string, string[]> = {
  openat: ['ENOSPC', 'EIO', 'EINTR'],
  write: ['ENOSPC', 'EIO', 'EINTR'],
  pwrite64: ['ENOSPC', 'EIO', 'EINTR'],
  writev: ['ENOSPC', 'EIO', 'EINTR'],
  fsync: ['ENOSPC', 'EIO', 'EINTR'],
  fdatasync: ['ENOSPC', 'EIO', 'EINTR'],
  ftruncate: ['EIO', 'EINTR'],
  rename: ['ENOSPC', 'EIO'],
  link: ['ENOSPC', 'EIO'],
  unlink: ['EIO'],
  mkdir: ['ENOSPC', 'EIO'],
}

/** A system call of a run on a file in the run's folder. */
export interface Call {
  name: string
  /** Relative to the run's folder. */
  file: string
  /** Number among the calls of this name on this file, from 1. */
  number: number
}

/** A fault that is injected into a call: an error, or a kill at this call. */
export interface Fault {
  call: Call
  what: string
}

export interface Run {
  folder: string
  argv: string[]
  env: Record<string, string>
}

export interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  out: string
  err: string
}

/** File names are random by default, but a fault is injected into a named file. */
const fixedNames = join(import.meta.dirname, 'fixed-names.cjs')

/** Runs the built program, under strace if a fault is injected or the calls are traced. */
async function start({ folder, argv, env }: Run, strace: string[] = []): Promise<Ended> {
  const words = [process.execPath, binary, ...argv]
  const [command = '', ...rest] = strace.length > 0 ? ['strace', ...strace, ...words] : words
  const child = spawn(command, rest, {
    cwd: join(folder, 'cwd'),
    env: {
      ...childEnvironment,
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      NODE_DISABLE_COMPILE_CACHE: '1',
      // With one thread, the order of the calls is always the same.
      UV_THREADPOOL_SIZE: '1',
      ...(strace.length > 0 ? { NODE_OPTIONS: `--require ${JSON.stringify(fixedNames)}` } : {}),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    err += chunk
  })
  return new Promise((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, out, err }))
  })
}

export const runWithoutFault = (run: Run): Promise<Ended> => start(run)

/** Runs the program and returns its calls that may change files in its folder. */
export async function traceCalls(run: Run): Promise<{ ended: Ended; calls: Call[] }> {
  const log = join(run.folder, 'calls')
  const ended = await start(run, ['-f', '-y', '-qq', '-s', '0', '-o', log, '-e', `trace=${changing.join()}`])
  return { ended, calls: findCalls(readFileSync(log, 'utf8'), run.folder) }
}

function findCalls(log: string, folder: string): Call[] {
  const counts = new Map<string, number>()
  return log
    .replaceAll(/AT_FDCWD<[^>]*>/g, '')
    .split('\n')
    .flatMap((line) => {
      const [, name = '', args = ''] = /^\d+ +(\w+)\((.*)/.exec(line) ?? []
      const paths = [...args.matchAll(/["<](\/[^">]*)[">]/g)].map(([, path = '']) => path)
      const own = paths.find((path) => path.startsWith(`${folder}/`))
      if (own === undefined) return []
      const file = own.slice(folder.length + 1)
      const key = `${name} ${file}`
      const number = (counts.get(key) ?? 0) + 1
      counts.set(key, number)
      const isReading = name === 'openat' && !/O_(CREAT|WRONLY|RDWR)/.test(args)
      return isReading ? [] : [{ name, file, number }]
    })
}

export const listFaults = (call: Call): Fault[] =>
  [...(failures[call.name] ?? []), 'SIGKILL'].map((what) => ({ call, what }))

/** Runs the program and injects a fault into one call. */
export async function runWithFault(
  run: Run,
  { call: { name, file, number }, what }: Fault,
): Promise<Ended & { isInjected: boolean }> {
  const log = join(run.folder, 'calls')
  const how = what === 'SIGKILL' ? 'signal=KILL' : `error=${what}`
  const ended = await start(run, [
    ...['-f', '-qq', '-s', '0', '-o', log],
    ...['-P', join(run.folder, file), '-e', `trace=${name}`, '-e', `inject=${name}:${how}:when=${number}`],
  ])
  const isInjected = /\(INJECTED\)|killed by SIGKILL/.test(readFileSync(log, 'utf8'))
  return { ...ended, isInjected }
}
