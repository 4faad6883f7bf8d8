import { type Draft, withSecret } from '../client/request.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { isPlainRemote } from '../settings/address.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { type SettingName, variableOf } from '../settings/table.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'

/** The setting that holds a service's address. */
export const addressOf = (service: Endpoint['service']) => (service === 'gateway' ? 'baseUrl' : 'agentsUrl')

/**
 * Completes a request with its secret. Throws a `CliError` of kind `credentials` where the address or the secret
 * is missing, or the one may not be used with the other (`cli.md`, Network).
 */
export function authorize(
  { progress, note }: Context,
  settings: ResolvedSettings,
  draft: Draft,
): HttpRequest {
  const addressName = addressOf(draft.endpoint.service)
  const address = settings.values[addressName]
  const addressOrigin = settings.origins[addressName]
  if (address === undefined) throw missing(addressName, settings)
  const { host } = new URL(address)
  if (isPlainRemote(address) && !settings.values.allowHttp) {
    throw refused(
      `${addressOrigin?.name}: plain http to ${host} would not be encrypted: use https, or --allow-http`,
    )
  }
  if (!draft.credential) return withSecret(draft, undefined, '')

  const { setting } = draft.credential
  const secret = settings.values[setting]
  const secretOrigin = settings.origins[setting]
  if (secret === undefined) throw missing(setting, settings)
  progress.secrets.add(secret)
  if (addressOrigin?.source === 'environment' && secretOrigin?.source === 'profile') {
    const way = `set ${variableOf(setting)} too, or choose a profile with --profile`
    throw refused(
      `the secret of ${secretOrigin.name} does not go to the address in ${addressOrigin.name}: ${way}`,
    )
  }
  if (addressOrigin?.source === 'flag' && secretOrigin?.source === 'profile') {
    note(`the secret of ${secretOrigin.name} goes to ${host}`)
  }
  return withSecret(draft, secret, secretOrigin?.name ?? '')
}

const refused = (message: string) => new CliError('credentials', message)

const names: { [K in SettingName]?: string } = {
  baseUrl: 'no address for the gateway',
  accessToken: 'no access token for the gateway',
  agentsUrl: 'no address for the session service',
  apiKey: 'no API key for the session service',
}

function missing(name: SettingName, { profile }: ResolvedSettings): CliError {
  const where = profile === 'default' ? '' : ` --profile ${profile}`
  const ways = `set ${variableOf(name)}, or 'parley config set${where} ${name}', or try '--profile demo'`
  return refused(`${names[name]}: ${ways}`)
}
