import { isUtf8 } from 'node:buffer'
import type { Context, Host } from '../../context.ts'
import { runCommand } from '../../io/command.ts'
import type { ToolResult } from './replying.ts'

/** A tool use to carry out here. */
interface Job {
  command: string
  name: string
  id: string
  session: string
  /** The tool's input as it is spelled. */
  input: string
  /** How long the command may take. Milliseconds. */
  limit: number
}

/** How many lines of stderr are shown. */
const mostLines = 20

/** Runs a command in the shell: the input is on its stdin, its stdout is the result. */
export async function runTool(context: Context, job: Job): Promise<ToolResult> {
  const { stdout, stderr, problem } = await runCommand(
    {
      text: job.command,
      env: environmentOf(context.host, job),
      input: job.input,
      isLeader: true,
      limit: job.limit,
      whenLate: `did not end within ${job.limit / 1000} s`,
    },
    context,
  )
  const why = problem ?? (isUtf8(stdout) ? undefined : 'printed what is not UTF-8')
  if (why === undefined) return { text: stdout.toString(), isError: false }
  return { text: `the command ${why}${lastLines(stderr)}`, isError: true }
}

function lastLines(stderr: string): string {
  const lines = stderr.trim().split(/\r?\n/).slice(-mostLines).join('\n')
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
