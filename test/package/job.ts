import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { childEnvironment } from '../harness/environment.ts'
import { binary, startEmulator } from '../harness/process.ts'
import { temporaryFolder } from '../harness/run.ts'

interface Ended {
  code: number | null
  signal: NodeJS.Signals | null
  /** Output that a runner reads: stdout and stderr. */
  log: string
}

/** Job of a pipeline: a folder in which steps run one after the other. */
export interface Job {
  folder: string
  write(name: string, text: string): void
  read(name: string): string
  has(name: string): boolean
  /** Runs a script as a runner does: without a terminal and with a stdin that never ends. */
  step(script: string, options?: StepOptions): Promise<Ended>
  /** Runs a script and expects its exit code, by default 0. Returns its output. */
  run(script: string, code?: number, options?: StepOptions): Promise<string>
  /** Starts a script without waiting for its end. */
  begin(script: string, options?: StepOptions): { child: ChildProcess; ended: Promise<Ended> }
}

interface StepOptions {
  env?: Record<string, string>
  /** Command of the shell. The name of the script follows. */
  shell?: string[]
}

/** Command by which GitHub starts bash if a workflow names no shell. */
const bash = ['bash', '-e']

/** The only package that a job may install. Nothing is installed, because `parley` is the built program. */
export const installedPackage = `./${manifest.name}-${manifest.version}.tgz`

/** Creates a job whose `parley` is the built program. */
export function createJob(variables: Record<string, string> = {}): Job {
  const folder = temporaryFolder()
  const bin = join(temporaryFolder(), 'bin')
  mkdirSync(bin)
  const programs = {
    parley: `exec "${process.execPath}" "${binary}" "$@"`,
    npm: `case "$*" in 'install --global --ignore-scripts '*'${installedPackage}') ;; *) echo "npm $*"; exit 1 ;; esac`,
    'apt-get': `case "$*" in 'update -qq' | 'install -y -qq jq') ;; *) echo "apt-get $*"; exit 1 ;; esac`,
  }
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const begin: Job['begin'] = (script, { env = {}, shell = bash } = {}) => {
    const file = join(bin, 'script.sh')
    writeFileSync(file, script)
    const [command = '', ...flags] = shell
    const places = { PATH: `${bin}:${childEnvironment.PATH}`, HOME: folder }
    const child = spawn(command, [...flags, file], {
      cwd: folder,
      env: { ...childEnvironment, ...places, ...variables, ...env },
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    let log = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        log += text
      })
    }
    const closed = once(child, 'close')
    return { child, ended: closed.then(([code, signal]) => ({ code, signal, log })) }
  }
  const step: Job['step'] = (script, options) => begin(script, options).ended
  return {
    folder,
    write: (name, text) => writeFileSync(join(folder, name), text),
    read: (name) => readFileSync(join(folder, name), 'utf8'),
    has: (name) => existsSync(join(folder, name)),
    begin,
    step,
    async run(script, code = 0, options = {}) {
      const ended = await step(script, options)
      expect(ended.code, ended.log).toBe(code)
      return ended.log
    },
  }
}

/** Starts the emulator and returns the variables of a job that uses it. */
export const serveEmulator = async () => (await startEmulator(['-q'])).env

/** Replaces `${{ … }}` by its value, as a GitHub runner does. */
const evaluate = (text: unknown, values: Record<string, string>): string =>
  String(text).replace(/\$\{\{ ([\w.-]+) \}\}/g, (_, name) => {
    if (!Object.hasOwn(values, name)) throw new Error(`no value for ${name}`)
    return values[name] ?? ''
  })

/** Job of a GitHub Actions workflow, with the fields that `runGitHubJob` supports. */
export interface GitHubJob {
  env?: Record<string, string>
  steps: (Partial<Record<'id' | 'uses' | 'run' | 'shell' | 'if', string>> & {
    env?: Record<string, string>
    with?: Record<string, string>
  })[]
}

/** Cache of jobs: for each key the files, by path. An entry is never replaced. */
export type JobCache = Map<string, Map<string, string>>

/** Runs the steps of a job as a runner does. Returns the exit codes of its scripts and its artifacts. */
export async function runGitHubJob(
  job: Job,
  { env = {}, steps }: GitHubJob,
  values: Record<string, string>,
  cache: JobCache = new Map(),
) {
  const evaluateAll = (texts: Record<string, string>, known: Record<string, string>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, evaluate(text, known)]))
  const variables = evaluateAll(env, values)
  const fromEnv = Object.entries(variables).map(([name, value]) => [`env.${name}`, value])
  const known = { ...values, ...Object.fromEntries(fromEnv) }
  const ended = { codes: [] as (number | null)[], log: '', artifacts: [] as string[] }
  for (const { uses, run, shell, if: condition, env: own = {}, with: given = {} } of steps) {
    if (ended.codes.some((code) => code !== 0) && condition !== 'always()') continue
    const inputs = evaluateAll(given, known)
    const { path = '', key = '', 'restore-keys': prefix } = inputs
    if (run !== undefined) {
      const place = (name: string) => join(job.folder, `step-${name}`)
      const files = { GITHUB_STEP_SUMMARY: place('summary'), GITHUB_OUTPUT: place('output') }
      const step = { ...variables, ...evaluateAll(own, known), ...files }
      const strict = shell === 'bash' && { shell: ['bash', '--noprofile', '--norc', '-eo', 'pipefail'] }
      const { code, log } = await job.step(evaluate(run, known), { env: step, ...strict })
      ended.codes.push(code)
      ended.log += log
    } else if (uses?.startsWith('actions/cache/restore@')) {
      const found = [...cache.keys()].filter((each) => prefix !== undefined && each.startsWith(prefix)).at(-1)
      const files = cache.get(key) ?? (found === undefined ? undefined : cache.get(found))
      for (const [name, text] of files ?? []) job.write(name, text)
    } else if (uses?.startsWith('actions/cache/save@')) {
      if (cache.has(key)) throw new Error(`the cache has ${key} already`)
      const there = path.trim().split('\n').filter(job.has)
      if (there.length > 0) cache.set(key, new Map(there.map((name) => [name, job.read(name)])))
    } else if (uses?.startsWith('actions/upload-artifact@')) {
      ended.artifacts.push(...path.trim().split('\n').filter(job.has))
    }
  }
  return ended
}
