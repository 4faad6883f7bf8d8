import { findSecrets, shellQuote } from '../client/preview.ts'
import { type Draft, withSecret } from '../client/request.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { isPlainRemote } from '../settings/address.ts'
import { defaultName } from '../settings/profiles.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type SettingName, variableOf } from '../settings/table.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { deadlineOf } from './settings.ts'

/** The setting that holds a service's address. */
export const addressOf = (service: Endpoint['service']) => (service === 'gateway' ? 'baseUrl' : 'agentsUrl')

/** The settings that hold a service's secret, or the command for it. */
const secretsOf = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/**
 * Completes a request with its secret. Throws a `CliError` of kind `credentials` where the address or the secret
 * is missing, or the one may not be used with the other (`README.md`, Configuration).
 */
export async function authorize(
  context: Context,
  settings: ResolvedSettings,
  draft: Draft,
): Promise<HttpRequest> {
  const { service } = draft.endpoint
  if (settings.values[addressOf(service)] === undefined) {
    const hasSecret = !draft.credential || secretOriginOf(settings, service)
    throw missing(hasSecret ? [addressOf(service)] : [addressOf(service), secretsOf[service][0]], settings)
  }
  const address = requireEncrypted(settings, service)
  for (const secret of findSecrets(draft.headers)) context.progress.secrets.add(secret)
  if (!draft.credential) return withSecret(draft, undefined)

  const problem = describeMismatch(settings, service)
  if (problem) throw refused(problem)
  const origin = secretOriginOf(settings, service)
  if (settings.origins[addressOf(service)]?.source === 'flag' && origin?.source === 'profile') {
    const { host } = new URL(address)
    context.note(
      `the secret of ${origin.name} goes to ${host}, as ${settings.origins[addressOf(service)]?.name} says`,
    )
  }
  const secret = await readSecret(context, settings, service)
  context.progress.secrets.add(secret)
  return withSecret(draft, secret)
}

function requireEncrypted(settings: ResolvedSettings, service: Endpoint['service']): string {
  const name = addressOf(service)
  const address = settings.values[name] ?? ''
  if (isPlainRemote(address) && !settings.values.allowHttp) {
    const { host } = new URL(address)
    throw refused(
      `${settings.origins[name]?.name}: plain http to ${host} would not be encrypted: use https, or --allow-http`,
    )
  }
  return address
}

/** Why a service's secret may not go to its address, or `undefined`. */
export function describeMismatch(
  settings: Pick<ResolvedSettings, 'origins'>,
  service: Endpoint['service'],
): string | undefined {
  const address = settings.origins[addressOf(service)]
  const secret = secretOriginOf(settings, service)
  if (address?.source !== 'environment' || secret?.source !== 'profile') return undefined
  const way = `set ${variableOf(secretsOf[service][0])} too, or choose a profile with --profile`
  return `the secret of ${secret.name} does not go to the address in ${address.name}: ${way}`
}

/** Where a service's secret comes from, or the command for it. */
export function secretOriginOf({ origins }: Pick<ResolvedSettings, 'origins'>, service: Endpoint['service']) {
  const [plain, command] = secretsOf[service]
  return origins[plain] ?? origins[command]
}

async function readSecret(
  context: Context,
  settings: ResolvedSettings,
  service: Endpoint['service'],
): Promise<string> {
  const { host, note, progress } = context
  const [plain, setting] = secretsOf[service]
  const secret = settings.values[plain]
  if (secret !== undefined) return secret
  const command = settings.values[setting]
  if (command === undefined) throw missing([plain], settings)
  const running = progress.commands.get(command)
  if (running) return running
  const { runSecretCommand } = await import('../settings/secret-command.ts')
  const origin = settings.origins[setting]?.name ?? ''
  const hasTerminal = host.stdin.kind === 'terminal' || host.stderr.isTerminal
  const hint = setTimeout(() => note(`waiting for ${setting} (${origin})`), 2000)
  const deadline = deadlineOf(context, settings) || Infinity
  const place = { ...host, hasTerminal, deadline }
  const started = runSecretCommand({ setting, command, origin }, place, progress.cleanups)
  progress.commands.set(command, started)
  return started.finally(() => clearTimeout(hint))
}

const refused = (message: string) => new CliError('credentials', message)

const names: { [K in SettingName]?: [what: string, service: string] } = {
  baseUrl: ['no address', 'the gateway'],
  accessToken: ['no access token', 'the gateway'],
  agentsUrl: ['no address', 'the session service'],
  apiKey: ['no API key', 'the session service'],
}

/** Of one service: its address, its secret, or both. */
function missing(settings: SettingName[], { profile, isNamed }: ResolvedSettings): CliError {
  const what = settings.map((name) => names[name]?.[0]).join(' and ')
  const flag = profile === defaultName ? '' : ` --profile ${shellQuote(profile)}`
  const ways = [
    `'parley config init${flag}' asks for ${settings.length > 1 ? 'them' : 'it'}`,
    ...(isNamed ? [] : [`set ${settings.map(variableOf).join(' and ')}`]),
    ...(settings.length > 1 ? [] : [`'parley config set${flag} ${settings[0]}'`]),
    "try '--profile demo'",
  ]
  return refused(`${what} for ${names[settings[0] as SettingName]?.[1]}: ${ways.join(', or ')}`)
}
