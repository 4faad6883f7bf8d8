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

/** How long a command may run. */
export interface RunLimits {
  /** Milliseconds; 0 for none. */
  timeout: number
  /** By the forward clock; Infinity for none. */
  deadline: number
}

/** Milliseconds. */
const longestRun = 60_000

/**
 * Runs a command in the shell; the first line of its output is the secret. The command has an empty stdin, and none of
 * the environment's secrets; on a terminal it may ask the person there. Throws a `CliError` with the command's stderr if it
 * fails.
 */
export async function runSecretCommand(
  { setting, command, origin }: SecretCommand,
  context: Pick<Context, 'host' | 'timers' | 'cleanups'>,
  { timeout, deadline }: RunLimits,
): Promise<string> {
  const failed = (why: string) => new CliError('credentials', `${setting} (${origin}) ${why}`)
  const { stdin, stderr: terminal, env, platform } = context.host
  const left = Math.max(0, deadline - context.timers.now())
  const longest = Math.min(longestRun, timeout > 0 ? timeout : Infinity)
  const isCut = left < longest
  const within = longest < longestRun ? `the timeout of ${longest / 1000} s` : `${longest / 1000} s`
  const whenLate = isCut ? 'did not end before the deadline' : `did not end within ${within}`
  const { stdout, stderr, problem } = await runCommand(
    {
      text: command,
      env: withoutSecrets(env, platform),
      // Only with a session of its own can all its processes be ended, but a new session has no terminal.
      isLeader: stdin.kind !== 'terminal' && !terminal.isTerminal,
      limit: Math.min(left, longest),
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
  throw failed(line.trim() ? `printed a secret that ${parsed.error.issues[0]?.message}` : 'printed nothing')
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
