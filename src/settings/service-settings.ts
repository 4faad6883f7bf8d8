import { shellQuote } from '../io/shell-quote.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { defaultName } from './profiles.ts'
import type { ResolvedSettings } from './resolve.ts'

/** A service in a message. */
export const nameOf = { gateway: 'the gateway', agents: 'the session service' }

/** The setting for a service's address. */
export const addressOf = { gateway: 'baseUrl', agents: 'agentsUrl' } as const

/** The settings for a service's secret, and for the command that prints it. */
export const secretsOf = {
  gateway: ['accessToken', 'accessTokenCommand'],
  agents: ['apiKey', 'apiKeyCommand'],
} as const

/** Where a service's secret comes from, or the command that prints it. */
export function secretOriginOf({ origins }: Pick<ResolvedSettings, 'origins'>, service: Endpoint['service']) {
  const [plain, command] = secretsOf[service]
  return origins[plain] ?? origins[command]
}

/** What a command that is printed to be pasted has after its name, so that it uses the same profile. */
export const profileFlag = ({ profile: { name, isNamed } }: Pick<ResolvedSettings, 'profile'>): string =>
  isNamed || name !== defaultName ? ` --profile ${shellQuote(name)}` : ''

/** Says where a secret came from that a service refused, and which command replaces it. */
export function mendSecret(settings: ResolvedSettings, service: Endpoint['service']): string {
  const [plain, command] = secretsOf[service]
  const setting = settings.origins[plain] ? plain : command
  const origin = settings.origins[setting]
  const given = setting === command ? `${setting} COMMAND` : setting
  const way =
    origin?.source === 'profile'
      ? `, ${setting}: 'parley config set${profileFlag(settings)} ${given}' replaces it`
      : ': change it there'
  return `its secret came from ${origin?.name}${way}`
}
