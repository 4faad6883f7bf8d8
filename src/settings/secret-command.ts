import type { Context, ProcessInfo } from '../context.ts'
import { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import { runCommand } from '../io/command.ts'
import { realTimers } from '../timers.ts'
import { permissionAdvice } from './profile-file.ts'
import type { ResolvedSettings } from './resolve.ts'
import { getSchema } from './schemas.ts'

const maxRunMs = 60_000

/** EX_TEMPFAIL of sysexits.h: the command may succeed later. */
const temporaryFailure = 75

/**
 * Returns the first line of the command's output. The command gets an empty stdin, and an environment without
 * parley's secrets. On a terminal the command may prompt the user. Throws a `CliError` with the command's
 * stderr if the command fails. Also throws if another user could have written the command.
 */
export async function runSecretCommand(
  context: Context,
  { values, origins, profile: { exposedPath } }: ResolvedSettings,
  setting: 'accessTokenCommand' | 'apiKeyCommand',
): Promise<string> {
  const { host, deadline } = context
  const { source, name: origin } = origins[setting] ?? {}
  const failed = (why: string) => new CliError('credentials', `${setting} (${origin}) ${why}`)
  if (source === 'profile' && exposedPath !== undefined)
    throw failed(`is not run: others can write ${exposedPath}; ${permissionAdvice}`)
  const left = deadline.leftMs
  const maxMs = Math.min(maxRunMs, values.timeout * 1000 || Infinity)
  const isCut = left < maxMs
  const timeoutMessage = isCut ? 'did not end before the deadline' : `did not end within ${maxMs / 1000} s`
  const { stdout, stderr, problem, exitCode } = await runCommand(
    {
      text: values[setting] ?? '',
      env: withoutSecrets(host.env),
      // parley can kill all processes of a group, but a new group cannot use the terminal. So the command
      // gets a new group only if there is no terminal.
      isGroupLeader: host.stdin.kind !== 'terminal' && !host.stderr.isTerminal,
      // The deadline uses real time, because the command may prompt a person.
      deadline: new Deadline(realTimers, realTimers.now() + Math.min(left, maxMs), {
        limitText: timeoutMessage,
      }),
    },
    context,
  )
  if (problem) {
    const isLate = problem === timeoutMessage
    throw failed(`${problem}${stderr.trim() ? `: ${stderr}` : ''}`).with({
      deadline: (isCut && isLate) || undefined,
      retry: isLate || exitCode === temporaryFailure ? 'later' : undefined,
    })
  }
  const [line = ''] = stdout.toString().split('\n', 1)
  const parsed = getSchema('accessToken').safeParse(line)
  if (parsed.success) return parsed.data
  throw failed(line.trim() ? `printed a secret that ${parsed.error.issues[0]?.message}` : 'printed nothing')
}

/** Windows ignores the case of variable names, so this function ignores it, too. */
const withoutSecrets = (env: ProcessInfo['env']) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^PARLEY_(ACCESS_TOKEN|API_KEY)$/i.test(name)))
