import type { ProcessInfo } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { findHeaderSecrets } from '../secrets.ts'
import { findExposedPath, permissionAdvice } from '../settings/profile-file.ts'
import {
  addressSettings,
  findSecretOrigin,
  formatProfileFlag,
  type ResolvedSettings,
  serviceNames,
} from '../settings/resolve.ts'
import { parseSetting } from '../settings/schemas.ts'
import { getSettingEnvVar, type SettingName, secretSettings } from '../settings/table.ts'
import { isUnencryptedRemote } from '../wire/address.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import type { PreparedRequest } from './request.ts'

type Service = Endpoint['service']

interface PrintedSecret {
  text: Promise<string>
  hasWorked: boolean
}

/** Checks only the first request and stores one secret, so all requests must be for the same service. */
export function createCredentialProvider(context: Context, settings: ResolvedSettings) {
  let isChecked = false
  let printed: PrintedSecret | undefined

  return {
    async sign(
      prepared: PreparedRequest,
    ): Promise<{ request: HttpRequest; secret?: PrintedSecret | undefined }> {
      const { endpoint, credential, headers } = prepared
      if (!isChecked) {
        requireUsable(context, settings, prepared)
        for (const secret of findHeaderSecrets(headers)) context.secrets.add(secret)
      }
      isChecked = true
      if (!credential) return { request: prepared }
      const addSecret = (text: string): HttpRequest => {
        context.secrets.add(text)
        return { ...prepared, headers: { [credential.header]: credential.prefix + text, ...headers } }
      }
      const given = settings.values[credential.setting]
      if (given !== undefined) return { request: addSecret(given) }
      const command = secretSettings[endpoint.service][1]
      printed ??= { text: runSecretCommand(context, settings, command), hasWorked: false }
      const secret = printed
      return { request: addSecret(await secret.text), secret }
    },
    /**
     * Called after a 401. Returns whether a repeated request may succeed. A secret that has worked may have
     * expired, so the next request runs the command that prints the secret again. All calls that used the old
     * secret share the new one.
     */
    renew(used: PrintedSecret | undefined): boolean {
      if (!used?.hasWorked) return false
      if (used === printed) printed = undefined
      return true
    },
  }
}

const maxRunMs = 60_000

/** Exit code EX_TEMPFAIL of sysexits.h: the command may succeed later. */
const temporaryFailure = 75

/**
 * Returns the first line that the command prints. The command gets an empty stdin and an environment
 * without parley's secrets. On a terminal, the command may prompt the user. Throws a `CliError` if the command
 * fails. Does not run a command from a file that others can write.
 */
async function runSecretCommand(
  context: Context,
  { values, origins }: ResolvedSettings,
  setting: 'accessTokenCommand' | 'apiKeyCommand',
): Promise<string> {
  const { host, deadline } = context
  const { source, label } = origins[setting] ?? {}
  const failed = (why: string) => authError(`${setting} (${label}) ${why}`)
  const exposedPath = source === 'profile' ? findExposedPath(host) : undefined
  if (exposedPath !== undefined)
    throw failed(`is not run: others can write ${exposedPath}; ${permissionAdvice}`)
  const maxMs = Math.min(maxRunMs, values.timeout * 1000 || Infinity)
  const limit = deadline.narrow(maxMs, `did not end within ${maxMs / 1000} s`)
  const { runCommand } = await import('../io/command.ts')
  const { stdout, stderr, problem, exitCode } = await runCommand(
    {
      text: values[setting] ?? '',
      env: withoutSecrets(host.env),
      // In a new process group, parley can kill all processes of the command, but the processes cannot read
      // from the terminal. So a command on a terminal stays in the group of parley.
      isGroupLeader: host.stdin.kind !== 'terminal' && !host.stderr.isTerminal,
      deadline: limit,
    },
    context,
  )
  const [line = ''] = stdout.toString().split('\n', 1)
  // If the command is a script with `set -x`, its stderr contains the secret. So the secret is redacted in
  // the failure below, too.
  context.secrets.add(line)
  if (problem)
    throw failed(problem).with({
      commandErrorText: stderr.trim(),
      deadline: deadline.hasPassed || undefined,
      retry: limit.hasPassed || exitCode === temporaryFailure ? 'later' : undefined,
    })
  const secret = parseSetting('accessToken', line)
  if (secret.value !== undefined) return secret.value
  throw failed(line.trim() ? `printed a secret that ${secret.problem}` : 'printed nothing')
}

/** Windows ignores the case of variable names, so this function does, too. */
const withoutSecrets = (env: ProcessInfo['env']) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !/^PARLEY_(ACCESS_TOKEN|API_KEY)$/i.test(name)))

function requireUsable(
  { messages }: Context,
  settings: ResolvedSettings,
  { endpoint: { service }, credential }: PreparedRequest,
): void {
  const { values, origins } = settings
  const name = addressSettings[service]
  const address = values[name]
  const [plain, command] = secretSettings[service]
  const hasSecret = !credential || (values[plain] ?? values[command]) !== undefined
  if (address === undefined || !hasSecret) {
    const missing = [...(address === undefined ? [name] : []), ...(hasSecret ? [] : [plain])]
    throw missingSettingsError(service, missing, settings)
  }
  refusePlainHttp(settings, service)
  if (!credential) return
  const origin = origins[name]
  const secret = findSecretOrigin(settings, service)
  if (secret?.source !== 'profile') return
  if (origin?.source === 'environment') {
    const hint = `set ${getSettingEnvVar(plain)} too, or choose a profile with --profile`
    throw authError(`the secret of ${secret.label} is not sent to the address in ${origin.label}: ${hint}`)
  }
  if (origin?.source === 'flag')
    messages.note(
      `the secret of ${secret.label} is sent to ${new URL(address).host}, the address in ${origin.label}`,
    )
}

export function refusePlainHttp({ values, origins }: ResolvedSettings, service: Service): void {
  const name = addressSettings[service]
  const address = values[name]
  if (address === undefined || values.allowHttp || !isUnencryptedRemote(address)) return
  const { host } = new URL(address)
  throw authError(
    `${origins[name]?.label}: plain http to ${host} would not be encrypted: use https, or --allow-http`,
  )
}

const authError = (message: string) => new CliError('credentials', message)

function missingSettingsError(service: Service, names: SettingName[], resolved: ResolvedSettings): CliError {
  const secret = service === 'gateway' ? 'no access token' : 'no API key'
  const what = names.map((name) => (name === addressSettings[service] ? 'no address' : secret)).join(' and ')
  const hints = [
    `'parley config init${formatProfileFlag(resolved)}' asks for the missing settings`,
    ...(resolved.profile.isNamed ? [] : [`set ${names.map(getSettingEnvVar).join(' and ')}`]),
    "try '--profile demo'",
  ]
  return authError(`${what} for ${serviceNames[service]}: ${hints.join(', or ')}`)
}
