import type { Context, ProcessInfo } from '../context.ts'
import { CliError } from '../errors.ts'
import { runCommand } from '../io/command.ts'
import { realTimers } from '../timers.ts'
import { schemas } from './schemas.ts'
import { type SettingName, settingNames, settingOf, variableOf } from './table.ts'

export interface SecretCommand {
  /** The setting that has the command. */
  setting: SettingName
  command: string
  /** Where the command comes from, such as `profile 'work'`. */
  origin: string
}

/** Milliseconds. */
const longestRun = 60_000

/**
 * Runs a command in the shell; the first line of its output is the secret. The command has an empty stdin, and none of
 * the environment's secrets; on a terminal it may ask the person there. Throws a `CliError` with the command's stderr if it
 * fails. `deadline` is milliseconds since the epoch, or Infinity.
 */
export async function runSecretCommand(
  { setting, command, origin }: SecretCommand,
  context: Pick<Context, 'host' | 'timers' | 'cleanups'>,
  deadline: number,
): Promise<string> {
  const failed = (why: string) => new CliError('credentials', `${setting} (${origin}) ${why}`)
  const { stdin, stderr: terminal, env, platform } = context.host
  const limit = Math.max(0, Math.min(longestRun, deadline - context.timers.now()))
  const isCut = limit < longestRun
  const whenLate = isCut ? 'did not end before the deadline' : `did not end within ${limit / 1000} s`
  const { stdout, stderr, problem } = await runCommand(
    {
      text: command,
      env: withoutSecrets(env, platform),
      // Only with a session of its own can all its processes be ended, but a new session has no terminal.
      isLeader: stdin.kind !== 'terminal' && !terminal.isTerminal,
      limit,
      whenLate,
    },
    // By the clock of the machine: a person may be asked for something.
    { ...context, timers: realTimers },
  )
  if (problem)
    throw failed(`${problem}${stderr.trim() ? `: ${stderr}` : ''}`).with({
      deadline: (isCut && problem === whenLate) || undefined,
    })
  const [line = ''] = stdout.toString().split('\n', 1)
  const parsed = schemas.accessToken().safeParse(line)
  if (parsed.success) return parsed.data
  throw failed(
    line.trim() ? 'printed a secret with characters that are not allowed in a header' : 'printed nothing',
  )
}

function withoutSecrets(
  env: ProcessInfo['env'],
  platform: NodeJS.Platform,
): Record<string, string | undefined> {
  const secrets = settingNames.filter((name) => settingOf(name).secret).map(variableOf)
  // On Windows a variable is found by its name in any case.
  const spelled = (name: string) => (platform === 'win32' ? name.toUpperCase() : name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secrets.includes(spelled(name))))
}
