import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { binary, type Started, start } from '../harness/process.ts'
import { temporaryFolder } from '../harness/run.ts'

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  /** What a runner would read: stdout and stderr. */
  log: string
}

/** A job of a pipeline: a folder, and steps that run there one after the other. */
export interface Job {
  folder: string
  write(name: string, text: string): void
  read(name: string): string
  has(name: string): boolean
  /** Runs a script as a runner does: without a terminal, with a stdin that never ends. */
  step(script: string, options?: StepOptions): Promise<Ended>
  /** The same, and what is started is not waited for. */
  begin(script: string, options?: StepOptions): { child: ChildProcess; ended: Promise<Ended> }
}

interface StepOptions {
  env?: Record<string, string>
  /** The shell, and what comes before the script's name. */
  shell?: string[]
}

/** How runners start bash. */
const bash = ['bash', '--noprofile', '--norc', '-eo', 'pipefail']

/** What a job may install, which is there already. */
const install = `install --global --ignore-scripts ${manifest.name}@${manifest.version}`

/** A job whose `parley` is the one that was built here. */
export function createJob(variables: Record<string, string> = {}): Job {
  const folder = temporaryFolder()
  const bin = join(temporaryFolder(), 'bin')
  mkdirSync(bin)
  const programs = {
    parley: `exec "${process.execPath}" "${binary}" "$@"`,
    npm: `[ "$*" = "${install}" ] || { echo "npm $*"; exit 1; }`,
  }
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const begin: Job['begin'] = (script, { env = {}, shell = bash } = {}) => {
    const file = join(bin, 'script.sh')
    writeFileSync(file, script)
    const [command = '', ...flags] = shell
    const child = spawn(command, [...flags, file], {
      cwd: folder,
      env: { PATH: `${bin}:${process.env.PATH}`, HOME: folder, ...variables, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let log = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log += text
      })
    }
    return {
      child,
      ended: new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal, log }))),
    }
  }
  return {
    folder,
    write: (name, text) => writeFileSync(join(folder, name), text),
    read: (name) => readFileSync(join(folder, name), 'utf8'),
    has: (name) => existsSync(join(folder, name)),
    begin,
    step: (script, options) => begin(script, options).ended,
  }
}

/** The variables of a job that speaks to the emulator. */
export async function serveEmulator(...flags: string[]): Promise<Record<string, string>> {
  const { child }: Started = start(['serve', '-q', ...flags])
  onTestFinished(() => void child.kill())
  const line = await new Promise<string>((resolve) => child.stdout?.once('data', resolve))
  const { baseUrl, agentsUrl, accessToken, apiKey } = JSON.parse(line.toString())
  return {
    PARLEY_BASE_URL: baseUrl,
    PARLEY_ACCESS_TOKEN: accessToken,
    PARLEY_AGENTS_URL: agentsUrl,
    PARLEY_API_KEY: apiKey,
  }
}

/** A text in which `${{ … }}` has its value, as a runner of GitHub puts it in. */
export const evaluate = (text: string, values: Record<string, string>): string =>
  text.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, name) => {
    if (!Object.hasOwn(values, name)) throw new Error(`no value for ${name}`)
    return values[name] ?? ''
  })
