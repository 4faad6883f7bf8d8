import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { shellQuote } from '../io/shell-quote.ts'
import { findSecrets } from '../secrets.ts'
import { isPlainRemote } from '../settings/address.ts'
import { defaultName } from '../settings/profiles.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type SettingName, variableOf } from '../settings/table.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { type Draft, withSecret } from './draft.ts'
import { deadlineOf } from './settings.ts'

/** The setting that holds a service's address. */
export const addressOf = (service: Endpoint['service']) => (service === 'gateway' ? 'baseUrl' : 'agentsUrl')

/** The settings that hold a service's secret, or the command for it. */
const secretsOf = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/** What gives a run's requests their secrets. */
export interface Authority {
  /**
   * Completes a request with its secret. Throws a `CliError` of kind `credentials` where the address or the secret is
   * missing, or the one may not be used with the other.
   */
  authorize(draft: Draft): Promise<HttpRequest>
  /** Forgets what commands gave. Returns whether there was anything. */
  forget(): boolean
}

export function createAuthority(context: Context, settings: ResolvedSettings): Authority {
  /** By service: no command runs twice. */
  const given = new Map<Endpoint['service'], Promise<string>>()

  async function readSecret(service: Endpoint['service']): Promise<string> {
    const [plain, setting] = secretsOf[service]
    const secret = settings.values[plain]
    if (secret !== undefined) return secret
    const command = settings.values[setting]
    if (command === undefined) throw missing([plain], settings)
    const running = given.get(service) ?? askCommand(context, settings, { setting, command })
    given.set(service, running)
    return running
  }

  return {
    forget() {
      const hasAny = given.size > 0
      given.clear()
      return hasAny
    },
    async authorize(draft) {
      const { service } = draft.endpoint
      if (settings.values[addressOf(service)] === undefined) {
        const hasSecret = !draft.credential || secretOriginOf(settings, service)
        throw missing(
          hasSecret ? [addressOf(service)] : [addressOf(service), secretsOf[service][0]],
          settings,
        )
      }
      const address = requireEncrypted(settings, service)
      for (const secret of findSecrets(draft.headers)) context.secrets.add(secret)
      if (!draft.credential) return withSecret(draft, undefined)

      const problem = describeMismatch(settings, service)
      if (problem) throw unusable(problem)
      noteOtherPlace(context, settings, { service, address })
      const secret = await readSecret(service)
      context.secrets.add(secret)
      return withSecret(draft, secret)
    },
  }
}

/** A profile's secret that goes to an address of a flag's is worth a word. */
function noteOtherPlace(
  { note }: Context,
  settings: ResolvedSettings,
  { service, address }: { service: Endpoint['service']; address: string },
): void {
  const secret = secretOriginOf(settings, service)
  const place = settings.origins[addressOf(service)]
  if (place?.source !== 'flag' || secret?.source !== 'profile') return
  note(`the secret of ${secret.name} goes to ${new URL(address).host}, as ${place.name} says`)
}

function requireEncrypted(settings: ResolvedSettings, service: Endpoint['service']): string {
  const name = addressOf(service)
  const address = settings.values[name] ?? ''
  if (isPlainRemote(address) && !settings.values.allowHttp) {
    const { host } = new URL(address)
    throw unusable(
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

async function askCommand(
  context: Context,
  settings: ResolvedSettings,
  { setting, command }: { setting: 'accessTokenCommand' | 'apiKeyCommand'; command: string },
): Promise<string> {
  const { host, note, cleanups } = context
  const { runSecretCommand } = await import('../settings/secret-command.ts')
  const origin = settings.origins[setting]?.name ?? ''
  const hasTerminal = host.stdin.kind === 'terminal' || host.stderr.isTerminal
  const hint = setTimeout(() => note(`waiting for ${setting} (${origin})`), 2000)
  const deadline = deadlineOf(context, settings) || Infinity
  const place = { ...host, hasTerminal, deadline }
  return runSecretCommand({ setting, command, origin }, place, cleanups).finally(() => clearTimeout(hint))
}

const unusable = (message: string) => new CliError('credentials', message)

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
  return unusable(`${what} for ${names[settings[0] as SettingName]?.[1]}: ${ways.join(', or ')}`)
}
