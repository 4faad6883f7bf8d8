import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** Command line of bash, with environment variables. */
export interface TimedCommand {
  command: string
  env?: Record<string, string>
}

export const parleyPath = resolve('bin/parley.cjs')

/**
 * Returns a folder in memory if a few images fit there, because the load of a disk would distort the
 * measurement.
 */
function findFastFolder(): string {
  if (!existsSync('/dev/shm')) return tmpdir()
  const { bavail, bsize } = statfsSync('/dev/shm')
  return bavail * bsize > 256 * 2 ** 20 ? '/dev/shm' : tmpdir()
}

const folder = mkdtempSync(join(findFastFolder(), 'parley-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

export const getTemporaryPath = (name: string): string => join(folder, name)

/** Environment variables that slow down every start of Node. */
export const slowVariables = ['NODE_EXTRA_CA_CERTS', 'NODE_OPTIONS'].filter((name) => process.env[name])

/** Environment without variables that configure parley or npm. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(PARLEY_|npm_|NODE_V8_COVERAGE$)/.test(name)),
)

const environment = { ...inherited, HOME: folder, XDG_CACHE_HOME: getTemporaryPath('cache') }

export const withoutSlowVariables = (job: TimedCommand): TimedCommand => ({
  ...job,
  command: [...slowVariables.map((name) => `unset ${name}`), job.command].join('; '),
})

/** Module that writes the peak memory of its Node process, in KiB, when the process exits. */
const peakReporter = getTemporaryPath('peak.cjs')
writeFileSync(
  peakReporter,
  `const { readFileSync, writeFileSync } = require('node:fs')
  const peak = () => /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]
  process.on('exit', () => writeFileSync(process.env.PEAK_FILE, peak()))`,
)

/** Runs a command to its end. Returns the milliseconds. Throws if the command fails. */
function measureMs({ command, env }: TimedCommand): Promise<number> {
  const start = performance.now()
  const child = spawn('bash', ['-c', `exec 0</dev/null >/dev/null; set -o pipefail; ${command}`], {
    env: { ...environment, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0) resolve(performance.now() - start)
      else reject(new Error(`${command}: exit ${code}: ${stderr}`))
    })
  })
}

/** Returns the peak memory of a command with one Node process. */
export async function measurePeakMiB(job: TimedCommand): Promise<number> {
  const file = getTemporaryPath('peak')
  await measureMs({ ...job, env: { ...job.env, NODE_OPTIONS: `--require ${peakReporter}`, PEAK_FILE: file } })
  return Number(readFileSync(file, 'utf8')) / 1024
}

/** Returns the median time of each job. The jobs run in turns, so that noise affects all jobs equally. */
export async function measureMedians(jobs: TimedCommand[], rounds: number): Promise<number[]> {
  const times: number[][] = jobs.map(() => [])
  for (const job of jobs) await measureMs(job)
  for (let round = 0; round < rounds; round++) {
    for (const [index, job] of jobs.entries()) times[index]?.push(await measureMs(job))
  }
  return times.map(median)
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number
