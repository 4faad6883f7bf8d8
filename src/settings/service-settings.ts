import { shellQuote } from '../io/shell-quote.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { defaultName } from './profiles.ts'
import type { ResolvedSettings } from './resolve.ts'
import { variableOf } from './table.ts'

/** A service in a message. */
export const nameOf = { gateway: 'the gateway', agents: 'the session service' }

/** The setting for a service's address. */
export const addressOf = (service: Endpoint['service']) => (service === 'gateway' ? 'baseUrl' : 'agentsUrl')

/** The settings for a service's secret, and for the command that prints it. */
export const secretsOf = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/** Why a service's secret may not go to its address; `undefined` if it may. */
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

/** Where a service's secret comes from, or the command that prints it. */
export function secretOriginOf({ origins }: Pick<ResolvedSettings, 'origins'>, service: Endpoint['service']) {
  const [plain, command] = secretsOf[service]
  return origins[plain] ?? origins[command]
}

/** What a command that is printed to be pasted has after its name, so that it uses the same profile. */
export const profileFlag = ({ profile: { name, isNamed } }: Pick<ResolvedSettings, 'profile'>): string =>
  isNamed || name !== defaultName ? ` --profile ${shellQuote(name)}` : ''

/** Says where a secret came from that a service refused, and which command replaces it. */
export function mendSecret(settings: ResolvedSettings, service: Endpoint['service']): string | undefined {
  const [plain, command] = secretsOf[service]
  const setting = settings.origins[plain] ? plain : command
  const origin = settings.origins[setting]
  if (!origin) return undefined
  const value = setting === command ? ' COMMAND' : ''
  const [place, way] =
    origin.source === 'profile'
      ? [
          `${origin.name}, ${setting}`,
          `'parley config set${profileFlag(settings)} ${setting}${value}' replaces it`,
        ]
      : [
          origin.name,
          `change it there; 'parley config list${profileFlag(settings)} --effective' shows where each value comes from`,
        ]
  return `its secret came from ${place}: ${way}`
}
