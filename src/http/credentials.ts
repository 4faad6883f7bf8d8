import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { findSecrets } from '../secrets.ts'
import { wayToClose } from '../settings/profile-file.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import {
  addressOf,
  describeMismatch,
  profileFlag,
  secretOriginOf,
  secretsOf,
} from '../settings/service-settings.ts'
import { type SettingName, variableOf } from '../settings/table.ts'
import { isPlainRemote } from '../wire/address.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { type Request, withSecret } from './request.ts'

/** Gives a run's requests their secrets. */
export interface Credentials {
  /**
   * Completes a request with its secret. Throws a `CliError` of kind `credentials` if the address or the secret is
   * missing, or the secret may not go to that address. A secret that a command prints is waited for until `once` is
   * aborted.
   */
  addTo(request: Request, once?: AbortSignal): Promise<HttpRequest>
  /** Forgets the secrets that commands printed. Returns whether there were any. */
  forget(): boolean
}

export function createCredentials(context: Context, settings: ResolvedSettings): Credentials {
  /** By service, so that no command runs twice. */
  const printed = new Map<Endpoint['service'], Promise<string>>()

  /** The addresses that a request may go to. */
  const allowed = new Map<Endpoint['service'], string>()

  /** The services whose new address was already noted. */
  const noted = new Set<Endpoint['service']>()

  async function readSecret(service: Endpoint['service'], once: AbortSignal | undefined): Promise<string> {
    const [plain, setting] = secretsOf[service]
    const given = settings.values[plain]
    if (given !== undefined) return given
    const command = settings.values[setting]
    if (command === undefined) throw missing([plain], settings)
    const secret = printed.get(service) ?? askCommand(context, settings, { setting, command })
    printed.set(service, secret)
    const late = `${setting} (${settings.origins[setting]?.name}) did not end while a call waited for it`
    return once ? untilAborted(secret, once, unusable(late)) : secret
  }

  return {
    forget() {
      const hasAny = printed.size > 0
      printed.clear()
      return hasAny
    },
    async addTo(request, once) {
      const { service } = request.endpoint
      if (settings.values[addressOf(service)] === undefined) {
        const hasSecret = !request.credential || secretOriginOf(settings, service)
        throw missing(
          hasSecret ? [addressOf(service)] : [addressOf(service), secretsOf[service][0]],
          settings,
        )
      }
      const address = allowed.get(service) ?? requireEncrypted(settings, service)
      allowed.set(service, address)
      for (const secret of findSecrets(request.headers)) context.secrets.add(secret)
      if (!request.credential) return withSecret(request, undefined)

      const problem = describeMismatch(settings, service)
      if (problem) throw unusable(problem)
      if (!noted.has(service)) noteOtherAddress(context, settings, { service, address })
      noted.add(service)
      const secret = await readSecret(service, once)
      context.secrets.add(secret)
      return withSecret(request, secret)
    },
  }
}

/** Says that a profile's secret goes to an address that a flag gave. */
function noteOtherAddress(
  { note }: Context,
  settings: ResolvedSettings,
  { service, address }: { service: Endpoint['service']; address: string },
): void {
  const secret = secretOriginOf(settings, service)
  const origin = settings.origins[addressOf(service)]
  if (origin?.source !== 'flag' || secret?.source !== 'profile') return
  note(`the secret of ${secret.name} goes to ${new URL(address).host}, as ${origin.name} says`)
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

interface NamedCommand {
  setting: 'accessTokenCommand' | 'apiKeyCommand'
  command: string
}

/** Waits for a secret until `once` is aborted. Its command is left running: the next call needs the secret too. */
function untilAborted(secret: Promise<string>, once: AbortSignal, late: CliError): Promise<string> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(late)
    once.addEventListener('abort', leave)
    if (once.aborted) leave()
    secret.then(resolve, reject).finally(() => once.removeEventListener('abort', leave))
  })
}

async function askCommand(
  context: Context,
  settings: ResolvedSettings,
  { setting, command }: NamedCommand,
): Promise<string> {
  const { note } = context
  const { runSecretCommand } = await import('../settings/secret-command.ts')
  const { source, name: origin = '' } = settings.origins[setting] ?? {}
  if (source === 'profile' && settings.openPlace !== undefined) {
    throw unusable(`${setting} (${origin}) is not run: others can write ${settings.openPlace}; ${wayToClose}`)
  }
  const hint = setTimeout(() => note(`waiting for ${setting} (${origin})`), 2000)
  const limits = { timeout: settings.values.timeout * 1000, deadline: context.limit.deadline }
  return runSecretCommand({ setting, command, origin }, context, limits).finally(() => clearTimeout(hint))
}

const unusable = (message: string) => new CliError('credentials', message)

const names: { [K in SettingName]?: [what: string, service: string] } = {
  baseUrl: ['no address', 'the gateway'],
  accessToken: ['no access token', 'the gateway'],
  agentsUrl: ['no address', 'the session service'],
  apiKey: ['no API key', 'the session service'],
}

/** `settings` are one service's: for its address, its secret, or both. */
function missing(settings: SettingName[], resolved: ResolvedSettings): CliError {
  const what = settings.map((name) => names[name]?.[0]).join(' and ')
  const flag = profileFlag(resolved)
  const ways = [
    `'parley config init${flag}' asks for ${settings.length > 1 ? 'them' : 'it'}`,
    ...(resolved.isNamed ? [] : [`set ${settings.map(variableOf).join(' and ')}`]),
    ...(settings.length > 1 ? [] : [`'parley config set${flag} ${settings[0]}'`]),
    "try '--profile demo'",
  ]
  return unusable(`${what} for ${names[settings[0] as SettingName]?.[1]}: ${ways.join(', or ')}`)
}

/**
 * Makes what has a call made once more if its secret has expired: after a 401, the command that gave the secret is
 * run again, once for all calls that were begun with it. A new secret that never worked is not replaced.
 */
export function createSecretRenewal({
  forgetSecrets,
}: {
  forgetSecrets(): boolean
}): <T>(call: () => Promise<T>) => Promise<T> {
  let version = 0
  let hasWorked = true

  /** Whether there may be another secret than the one of this version. */
  function renew(used: number): boolean {
    if (used < version) return true
    if (!hasWorked || !forgetSecrets()) return false
    version++
    hasWorked = false
    return true
  }

  return async (call) => {
    const used = version
    try {
      const value = await call()
      if (used === version) hasWorked = true
      return value
    } catch (error) {
      if (!(error instanceof CliError) || error.details.status !== 401 || !renew(used)) throw error
      const again = version
      const value = await call()
      if (again === version) hasWorked = true
      return value
    }
  }
}
