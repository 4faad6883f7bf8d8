import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'

/** System calls that create or change a file, and the errors that the system may return for each call. */
const failures: Record<string, string[]> = {
  ...Object.fromEntries(
    ['openat', 'write', 'pwrite64', 'writev', 'fsync', 'fdatasync'].map((name) => [
      name,
      ['ENOSPC', 'EIO', 'EINTR'],
    ]),
  ),
  ...Object.fromEntries(['rename', 'link', 'mkdir'].map((name) => [name, ['ENOSPC', 'EIO']])),
  ftruncate: ['EIO', 'EINTR'],
  unlink: ['EIO'],
}
const changing = Object.keys(failures)

/** System call that may change a file in the folder of a run. */
export interface SystemCall {
  name: string
  /** Path in the folder of the run. */
  file: string
  /** Position among the calls of this name on this file, counted from 1. */
  number: number
}

/** Fault of a system call: an error code such as ENOSPC, or SIGKILL at this call. */
export interface InjectedFault {
  call: SystemCall
  what: string
}

export interface RunSettings {
  folder: string
  argv: string[]
  env: Record<string, string>
}

export interface ProcessResult {
  code: number | null
  signal: NodeJS.Signals | null
  out: string
  err: string
}

const fixedNames = join(import.meta.dirname, 'fixed-names.cjs')

/** Runs the built program, under strace if strace has arguments. */
async function start({ folder, argv, env }: RunSettings, strace: string[] = []): Promise<ProcessResult> {
  const words = [process.execPath, binary, ...argv]
  const [command = '', ...rest] = strace.length > 0 ? ['strace', ...strace, ...words] : words
  const child = spawn(command, rest, {
    cwd: join(folder, 'cwd'),
    env: {
      ...childEnvironment,
      HOME: join(folder, 'home'),
      TMPDIR: join(folder, 'tmp'),
      NODE_DISABLE_COMPILE_CACHE: '1',
      // With one thread, the calls are always in the same order, so the number of a call always means the
      // same call.
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

export const runWithoutFault = (run: RunSettings): Promise<ProcessResult> => start(run)

/** Runs the program, and returns the system calls that may change files in its folder. */
export async function traceCalls(run: RunSettings): Promise<{ ended: ProcessResult; calls: SystemCall[] }> {
  const log = join(run.folder, 'calls')
  const ended = await start(run, ['-f', '-y', '-qq', '-s', '0', '-o', log, '-e', `trace=${changing.join()}`])
  return { ended, calls: findCalls(readFileSync(log, 'utf8'), run.folder) }
}

function findCalls(log: string, folder: string): SystemCall[] {
  const counts = new Map<string, number>()
  return log
    .replaceAll(/AT_FDCWD<[^>]*>/g, '')
    .split('\n')
    .flatMap((line) => {
      const [, name = '', args = ''] = /^\d+ +(\w+)\((.*)/.exec(line) ?? []
      const paths = [...args.matchAll(/["<](\/[^">]*)[">]/g)].map(([, path = '']) => path)
      const path = paths.find((path) => path.startsWith(`${folder}/`))
      if (path === undefined) return []
      const file = path.slice(folder.length + 1)
      const key = `${name} ${file}`
      const number = (counts.get(key) ?? 0) + 1
      counts.set(key, number)
      const isReading = name === 'openat' && !/O_(CREAT|WRONLY|RDWR)/.test(args)
      return isReading ? [] : [{ name, file, number }]
    })
}

export const listPossibleFaults = (call: SystemCall): InjectedFault[] =>
  [...(failures[call.name] ?? []), 'SIGKILL'].map((what) => ({ call, what }))

/** Runs the program and injects a fault into one call. */
export async function runWithFault(
  run: RunSettings,
  { call: { name, file, number }, what }: InjectedFault,
): Promise<ProcessResult & { isInjected: boolean }> {
  const log = join(run.folder, 'calls')
  const how = what === 'SIGKILL' ? 'signal=KILL' : `error=${what}`
  const ended = await start(run, [
    ...['-f', '-qq', '-s', '0', '-o', log],
    ...['-P', join(run.folder, file), '-e', `trace=${name}`, '-e', `inject=${name}:${how}:when=${number}`],
  ])
  const isInjected = /\(INJECTED\)|killed by SIGKILL/.test(readFileSync(log, 'utf8'))
  return { ...ended, isInjected }
}
