import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { platform } from 'node:os'
import { win32 } from 'node:path'
import type { BasicContext, ProcessInfo } from '../basic-context.ts'
import type { Deadline } from '../deadline.ts'
import { describeFileError } from '../errors.ts'

interface ShellCommand {
  text: string
  env: ProcessInfo['env']
  input?: string
  /**
   * If true, the command runs in a new process group. parley can then kill all its processes, but they
   * cannot read from the terminal.
   */
  isGroupLeader: boolean
  deadline: Deadline
}

interface ShellCommandResult {
  stdout: Buffer
  stderr: string
  /** Reason of a failure, as the end of a sentence: `failed with exit code 1`. */
  problem: string | undefined
  /** `null` if the command did not exit by itself. */
  exitCode: number | null
}

const maxStdoutBytes = 2 ** 20

const maxStderrBytes = 8192

export async function runCommand(
  { text, env, input, isGroupLeader, deadline }: ShellCommand,
  { host, cleanups }: Pick<BasicContext, 'host' | 'cleanups'>,
): Promise<ShellCommandResult> {
  const detached = isGroupLeader && host.platform !== 'win32'
  const child = spawn(text, {
    cwd: host.cwd,
    env,
    shell: true,
    detached,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const stop = () => end(child, detached, host)
  cleanups.add(stop)
  // The command may end before it has read its input, so a failed write is ignored.
  child.stdin?.on('error', () => {}).end(input)
  const printed: Buffer[] = []
  let size = 0
  let tail = Buffer.alloc(0)
  let cancelDeadline = () => {}
  try {
    return await new Promise((resolve) => {
      const finish = (problem?: string, exitCode: number | null = null) =>
        resolve({ stdout: Buffer.concat(printed), stderr: tail.toString(), problem, exitCode })
      const abort = (problem: string) => {
        stop()
        // A process outside of the command's process group may keep the streams open, so parley closes its
        // own ends of them.
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
        child.unref()
        finish(problem)
      }
      cancelDeadline = deadline.onPass(({ limitText = 'did not end before the deadline' }) =>
        abort(limitText),
      )
      child.stdout?.on('data', (bytes: Buffer) => {
        size += bytes.length
        if (size > maxStdoutBytes) abort('printed more than 1 MiB')
        else printed.push(bytes)
      })
      child.stderr?.on('data', (bytes: Buffer) => {
        tail = Buffer.concat([tail, bytes]).subarray(-maxStderrBytes)
      })
      child.once('error', (error) => finish(`could not be run: ${describeFileError(error)}`))
      child.once('close', (code, signal) => finish(describeEnd(code, signal), code))
    })
  } finally {
    cancelDeadline()
    cleanups.delete(stop)
  }
}

export function runCommandOnTerminal(
  { text, env, input }: Pick<ShellCommand, 'text' | 'env' | 'input'>,
  cleanups: BasicContext['cleanups'],
): Promise<number | undefined> {
  // Without exec, the command may be a child of the shell. A signal to the shell would then not end the
  // command.
  const isSimple = platform() !== 'win32' && /^[\w\s./+,:@%-]+$/.test(text)
  const script = isSimple ? `exec ${text}` : text
  const child = spawn(script, { env, shell: true, stdio: ['pipe', 'inherit', 'inherit'] })
  // The command may end before it has read its input, so a failed write is ignored.
  child.stdin.on('error', () => {}).end(input)
  const stop = () => void child.kill()
  cleanups.add(stop)
  return new Promise<number | undefined>((resolve) => {
    child.once('error', () => resolve(commandNotFound))
    child.once('exit', (code) => resolve(code ?? undefined))
  }).finally(() => cleanups.delete(stop))
}

const commandNotFound = 127

function describeEnd(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `was ended by ${signal}`
  return code === 0 ? undefined : `failed with exit code ${code}`
}

/** Synchronous, because signal handlers call it. */
function end(child: ChildProcess, isLeader: boolean, { platform, env }: ProcessInfo): void {
  if (child.pid === undefined) return
  const isEnded = platform === 'win32' ? endTree(child.pid, env) : isLeader && endGroup(child.pid)
  if (!isEnded) child.kill()
}

/** Returns false if `sh` cannot be run. */
function endGroup(pid: number): boolean {
  const script = 'kill -s TERM -- "$1"; sleep 0.1; kill -s KILL -- "$1"'
  return spawnSync('sh', ['-c', script, 'sh', `-${pid}`], { stdio: 'ignore' }).error === undefined
}

/** After a signal, parley must end within half a second, so taskkill gets less time. */
const maxEndMs = 400

/** On Windows, `kill` would not end the child processes. */
function endTree(pid: number, env: ShellCommand['env']): boolean {
  // Windows searches the current folder first, so parley runs taskkill by its full path.
  const taskkill = win32.join(env.SystemRoot ?? 'C:\\Windows', 'System32', 'taskkill.exe')
  const words = ['/PID', String(pid), '/T', '/F']
  return spawnSync(taskkill, words, { stdio: 'ignore', timeout: maxEndMs }).status === 0
}
