import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'

/** The calls by which a file comes to be, and changes. */
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

/** What the system may say to them. */
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

/** One call of a run, on one of the run's own files. */
export interface Call {
  name: string
  /** From the run's folder. */
  file: string
  /** From 1, of the calls of this name on this file. */
  number: number
}

/** What is done to a call: it fails with this error, or the run is killed there. */
export interface Blow {
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

/** Names of files are otherwise made by chance, and a blow is aimed at a name. */
const withoutChance = join(import.meta.dirname, 'without-chance.cjs')

/** Runs the built program; under strace if there is a blow, or to tell its calls. */
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
      // The calls of one thread come in the same order each time.
      UV_THREADPOOL_SIZE: '1',
      ...(strace.length > 0 ? { NODE_OPTIONS: `--require ${JSON.stringify(withoutChance)}` } : {}),
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

export const runPlainly = (run: Run): Promise<Ended> => start(run)

/** Runs it, and tells the calls on files below its folder that may change something. */
export async function tellCalls(run: Run): Promise<{ ended: Ended; calls: Call[] }> {
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

export const blowsAt = (call: Call): Blow[] =>
  [...(failures[call.name] ?? []), 'SIGKILL'].map((what) => ({ call, what }))

/** Runs it, and strikes at one call. */
export async function strike(
  run: Run,
  { call: { name, file, number }, what }: Blow,
): Promise<Ended & { isStruck: boolean }> {
  const log = join(run.folder, 'calls')
  const how = what === 'SIGKILL' ? 'signal=KILL' : `error=${what}`
  const ended = await start(run, [
    ...['-f', '-qq', '-s', '0', '-o', log],
    ...['-P', join(run.folder, file), '-e', `trace=${name}`, '-e', `inject=${name}:${how}:when=${number}`],
  ])
  const isStruck = /\(INJECTED\)|killed by SIGKILL/.test(readFileSync(log, 'utf8'))
  return { ...ended, isStruck }
}
