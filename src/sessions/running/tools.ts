import { isUtf8 } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import type { Context, Host } from '../../context.ts'
import { endFamily } from '../../process-family.ts'
import { callAfter } from '../../timers.ts'

/** What a tool gives back to the agent. */
export interface ToolResult {
  text: string
  isError: boolean
}

/** A tool use to carry out here. */
export interface Job {
  command: string
  name: string
  id: string
  session: string
  /** The tool's input as it is spelled. */
  input: string
  /** How long the command may take. Milliseconds. */
  limit: number
}

/** Of the result, in bytes. */
const longest = 2 ** 20

/** What is kept of stderr, in bytes, and what is shown of it, in lines. */
const [longestTail, mostLines] = [8192, 20]

/**
 * Runs a command in the shell: the input is on its stdin, its stdout is the result. All processes that it started end
 * with it where it takes too long or prints too much, and with the run.
 */
export async function runTool({ host, timers, cleanups }: Context, job: Job): Promise<ToolResult> {
  const { platform, env } = host
  const isLeader = platform !== 'win32'
  const options = { cwd: host.cwd, env: environmentOf(host, job), shell: true, detached: isLeader }
  const child = spawn(job.command, { ...options, stdio: 'pipe' })
  const stop = () => endFamily(child, { isLeader, platform, env })
  cleanups.add(stop)
  const isOver = new AbortController()
  const late = `did not end within ${job.limit / 1000} s`
  const forget = callAfter(timers, job.limit, () => isOver.abort(late))
  // What does not read its input is none the worse for it.
  child.stdin.on('error', () => {}).end(job.input)
  try {
    return await watch(child, isOver, stop)
  } finally {
    forget()
    cleanups.delete(stop)
  }
}

function watch(child: ChildProcess, isOver: AbortController, stop: () => void): Promise<ToolResult> {
  const printed: Buffer[] = []
  let size = 0
  let tail = Buffer.alloc(0)
  return new Promise((resolve) => {
    const fail = (what: string) => resolve({ text: `the command ${what}${lastLines(tail)}`, isError: true })
    isOver.signal.addEventListener('abort', () => {
      stop()
      // A process that escaped may still have these open: it is not waited for.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
      child.unref()
      fail(isOver.signal.reason)
    })
    child.stdout?.on('data', (bytes: Buffer) => {
      size += bytes.length
      if (size > longest) isOver.abort('printed more than 1 MiB')
      else printed.push(bytes)
    })
    child.stderr?.on('data', (bytes: Buffer) => {
      tail = Buffer.concat([tail, bytes]).subarray(-longestTail)
    })
    child.once('error', (error: NodeJS.ErrnoException) => fail(`could not be run (${error.code})`))
    child.once('close', (code, signal) => {
      const output = Buffer.concat(printed)
      if (signal) fail(`was ended by ${signal}`)
      else if (code !== 0) fail(`failed with exit code ${code}`)
      else if (!isUtf8(output)) fail('printed what is not UTF-8')
      else resolve({ text: output.toString(), isError: false })
    })
  })
}

function lastLines(tail: Buffer): string {
  const lines = tail.toString().trim().split(/\r?\n/).slice(-mostLines).join('\n')
  return lines === '' ? '' : `:\n${lines}`
}

/** The environment without anything of parley's own, which may be a secret. */
function environmentOf({ env }: Host, { name, id, session }: Job): Record<string, string | undefined> {
  const others = Object.entries(env).filter(([variable]) => !/^parley_/i.test(variable))
  return {
    ...Object.fromEntries(others),
    PARLEY_TOOL_NAME: name,
    PARLEY_TOOL_USE_ID: id,
    PARLEY_SESSION: session,
  }
}
