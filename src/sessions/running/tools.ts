import { isUtf8 } from 'node:buffer'
import { runCommand } from '../../io/command.ts'
import type { SessionAccess } from '../session.ts'
import type { Use } from './judgement.ts'
import type { ToolResult } from './replying.ts'

/** How many lines of stderr are shown. */
const mostLines = 20

/**
 * Runs a command in the shell for a tool use: its input is on stdin, and stdout is the result. `limit` is how long it may take,
 * in milliseconds.
 */
export async function runTool(
  { context, parts }: SessionAccess,
  use: Use,
  command: string,
  limit: number,
): Promise<ToolResult> {
  // Anything of parley's own may be a secret.
  const others = Object.entries(context.host.env).filter(([variable]) => !/^parley_/i.test(variable))
  const env = {
    ...Object.fromEntries(others),
    PARLEY_TOOL_NAME: use.name,
    PARLEY_TOOL_USE_ID: use.id,
    PARLEY_SESSION: parts.params.session,
  }
  const whenLate = `did not end within ${limit / 1000} s`
  const { stdout, stderr, problem } = await runCommand(
    { text: command, env, input: use.inputText, isLeader: true, limit, whenLate },
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
