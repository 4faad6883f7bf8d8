import { join } from 'node:path'
import { type Ended, execute } from '../harness/process.ts'
import { homeVariables, readText } from '../harness/run.ts'

/** System calls that create or change a file, and the errors that the system may return for each call. */
const writing = ['ENOSPC', 'EIO', 'EINTR']
const naming = ['ENOSPC', 'EIO']
const failures: Record<string, string[]> = {
  ...{
    openat: writing,
    write: writing,
    pwrite64: writing,
    writev: writing,
    fsync: writing,
    fdatasync: writing,
  },
  ...{ rename: naming, link: naming, mkdir: naming, ftruncate: ['EIO', 'EINTR'], unlink: ['EIO'] },
}

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

const fixedNames = join(import.meta.dirname, 'fixed-names.cjs')

const getVariables = ({ folder, env }: RunSettings) => ({
  ...homeVariables(join(folder, 'home')),
  TMPDIR: join(folder, 'tmp'),
  NODE_DISABLE_COMPILE_CACHE: '1',
  // With one thread, the calls are always in the same order, so the number of a call always means the same call.
  UV_THREADPOOL_SIZE: '1',
  ...env,
})

export const runWithoutFault = (run: RunSettings): Promise<Ended> =>
  execute(run.argv, { cwd: join(run.folder, 'cwd'), env: getVariables(run) })

const trace = (run: RunSettings, flags: string[]): Promise<Ended> =>
  execute(run.argv, {
    cwd: join(run.folder, 'cwd'),
    env: { ...getVariables(run), NODE_OPTIONS: `--require ${JSON.stringify(fixedNames)}` },
    within: ['strace', '-f', '-qq', '-s', '0', '-o', join(run.folder, 'calls'), ...flags],
  })

/** Runs the program, and returns the system calls that may change files in its folder. */
export async function traceCalls(run: RunSettings) {
  const ended = await trace(run, ['-y', '-e', `trace=${Object.keys(failures).join()}`])
  return { ended, calls: findCalls(readText(run.folder, 'calls'), run.folder) }
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
): Promise<Ended & { isInjected: boolean }> {
  const how = `${what === 'SIGKILL' ? 'signal=KILL' : `error=${what}`}:when=${number}`
  const path = join(run.folder, file)
  const ended = await trace(run, ['-P', path, '-e', `trace=${name}`, '-e', `inject=${name}:${how}`])
  const isInjected = /\(INJECTED\)|killed by SIGKILL/.test(readText(run.folder, 'calls'))
  return { ...ended, isInjected }
}
