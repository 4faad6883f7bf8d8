import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFastFolder } from '../harness/environment.ts'

// A few images fit into the folder. The load of a disk would distort the measurement.
const folder = mkdtempSync(join(findFastFolder(256 * 2 ** 20), 'parley-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

export const getTemporaryPath = (name: string): string => join(folder, name)

/** Writes a file into the temporary folder. Returns its path. */
export function writeTemporaryFile(name: string, text: string): string {
  writeFileSync(getTemporaryPath(name), text)
  return getTemporaryPath(name)
}

/** Environment of all commands. The benchmark adds the address of its server. */
export const environment: Record<string, string | undefined> = {
  PATH: process.env.PATH,
  HOME: folder,
  PARLEY_ACCESS_TOKEN: 't',
  PARLEY_API_KEY: 'k',
}

/** Module that writes the peak memory of its Node process, in KiB, when the process exits. */
const peakReporter = writeTemporaryFile(
  'peak.cjs',
  `const { readFileSync, writeFileSync } = require('node:fs')
  const peak = () => /VmHWM:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]
  process.on('exit', () => writeFileSync(process.env.PEAK_FILE, peak()))`,
)

/** Runs a command line of bash to its end. Returns the milliseconds. Throws if the command fails. */
function measureMs(command: string, env: Record<string, string> = {}): Promise<number> {
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
export async function measurePeakMiB(command: string): Promise<number> {
  const file = getTemporaryPath('peak')
  await measureMs(command, { NODE_OPTIONS: `--require ${peakReporter}`, PEAK_FILE: file })
  return Number(readFileSync(file, 'utf8')) / 1024
}

/** Returns the median time of each command. They run in turns, so that noise affects all equally. */
export async function measureMedians(commands: string[], rounds: number): Promise<number[]> {
  const times: number[][] = commands.map(() => [])
  for (const command of commands) await measureMs(command)
  for (let round = 0; round < rounds; round++) {
    for (const [index, command] of commands.entries()) times[index]?.push(await measureMs(command))
  }
  return times.map(median)
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] as number
