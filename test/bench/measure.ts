import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** A whole process, or a shell pipeline, to be timed. */
export interface Job {
  command: string
  env?: Record<string, string>
}

export const parley = resolve('bin/parley.cjs')

/** In memory where there is room for some images: how busy a disk is says nothing about a program. */
function findPlace(): string {
  if (!existsSync('/dev/shm')) return tmpdir()
  const { bavail, bsize } = statfsSync('/dev/shm')
  return bavail * bsize > 256 * 2 ** 20 ? '/dev/shm' : tmpdir()
}

const folder = mkdtempSync(join(findPlace(), 'parley-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

export const temporary = (name: string): string => join(folder, name)

/** Those of the environment's variables that make every start of Node's take longer. */
export const burdens = ['NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS'].filter((name) => process.env[name])

/** The environment as it is, but for what would tell parley or npm of other things. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(PARLEY_|npm_|NODE_V8_COVERAGE$)/.test(name)),
)

const environment: NodeJS.ProcessEnv = { ...inherited, HOME: folder, XDG_CACHE_HOME: temporary('cache') }

/** The same job in an environment without `burdens`. */
export const unburdened = (job: Job): Job => ({
  ...job,
  command: [...burdens.map((name) => `unset ${name}`), job.command].join('; '),
})

/** A module that makes a Node process tell its peak memory, in KiB; what its parent used before does not count. */
const peakTeller = temporary('peak.cjs')
writeFileSync(
  peakTeller,
  `const { readFileSync, writeFileSync } = require('node:fs')
  const peak = () => /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]
  process.on('exit', () => writeFileSync(process.env.PEAK_FILE, peak()))`,
)

/** Runs a job to its end; returns its milliseconds. Throws where it fails. */
export function time({ command, env }: Job): Promise<number> {
  const start = performance.now()
  const child = spawn('bash', ['-c', `exec 0</dev/null >/dev/null; set -o pipefail; ${command}`], {
    env: { ...environment, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(performance.now() - start)
      else reject(new Error(`${command}: exit ${code}: ${said}`))
    })
  })
}

/** The peak memory of a job that is one Node process, in MiB. */
export async function peak(job: Job): Promise<number> {
  const file = temporary('peak')
  await time({ ...job, env: { ...job.env, NODE_OPTIONS: `--require ${peakTeller}`, PEAK_FILE: file } })
  return Number(readFileSync(file, 'utf8')) / 1024
}

/** The medians of jobs that are timed in turns, so that noise meets them alike. */
export async function compare(jobs: Job[], rounds: number): Promise<number[]> {
  const times: number[][] = jobs.map(() => [])
  for (const job of jobs) await time(job)
  for (let round = 0; round < rounds; round++) {
    for (const [index, job] of jobs.entries()) times[index]?.push(await time(job))
  }
  return times.map(median)
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number
