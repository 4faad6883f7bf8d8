import { promises as fs } from 'node:fs'
import type { Host } from '../basic-context.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { toOneLine } from '../io/escape.ts'
import { demoProfileName } from '../settings/profiles.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { Exchange } from '../wire/exchange.ts'

export async function chooseTransport(
  context: Context,
  settings: ResolvedSettings,
  isBatch: boolean,
): Promise<Exchange> {
  const { host, flags } = context
  const create = settings.profile.name === demoProfileName ? createDemo : createNetwork
  const exchange = host.exchange ?? (await create(context, settings, isBatch))
  return flags.verbose ? withLog(exchange, context) : exchange
}

/**
 * Implements `--verbose`. Logs a request when its first byte is sent, so a request that a proxy stopped is
 * not logged.
 */
function withLog(exchange: Exchange, { messages, secrets, host: { timers } }: Context): Exchange {
  const log = (mark: '>' | '<', first: string, headers: Record<string, string>, ...last: string[]) => {
    const fields = Object.entries(secrets.redactHeaders(headers)).map(([name, value]) => `${name}: ${value}`)
    for (const line of [first, ...fields, ...last])
      messages.printLine(`${mark} ${toOneLine(secrets.redact(line), 4000)}`)
  }
  return async (request, onSent) => {
    const start = timers.now()
    const size = request.body ? [`(${request.body.length} bytes)`] : []
    let isLogged = false
    const logRequest = () => {
      if (!isLogged) log('>', `${request.method} ${request.url}`, request.headers, ...size)
      isLogged = true
    }
    const response = await exchange(request, () => {
      logRequest()
      onSent?.()
    })
    // The emulator does not call `onSent`, so its request is logged here.
    logRequest()
    const took = `after ${timers.now() - start} ms`
    log('<', `${response.status} ${response.statusText} (${took})`, response.headers)
    return response
  }
}

async function createDemo(context: Context): Promise<Exchange> {
  const [{ createEmulator }, { openDemoSessions }] = await Promise.all([
    import('../emulator/emulator.ts'),
    import('./demo-sessions.ts'),
  ])
  const exchange = createEmulator({
    store: openDemoSessions(context),
    onNewSession: (id) =>
      context.messages.note(`the demo profile: the session ${id} did not exist, so it begins empty`),
  })
  let isAnnounced = false
  return async (request) => {
    // A command that only reads prints no note. So a pipeline such as `events list | events confirm` prints
    // the note once.
    if (request.method !== 'GET' && !isAnnounced) {
      isAnnounced = true
      context.messages.note('the demo profile: answers come from the built-in emulator, no model is called')
    }
    return exchange(request)
  }
}

async function createNetwork(context: Context, settings: ResolvedSettings, isBatch: boolean) {
  const { host, cleanups, messages } = context
  const { values } = settings
  const [{ createHttpExchange }, { createConnectionPool, loadUndiciClient }] = await Promise.all([
    import('./exchange.ts'),
    import('./connections.ts'),
  ])
  if (isBatch) await loadUndiciClient()
  if (host.env.NODE_TLS_REJECT_UNAUTHORIZED === '0') {
    messages.warn(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 turns off the check of TLS certificates: others may read all traffic',
    )
  }
  const connect = {
    connectTimeoutMs: values.connectTimeout * 1000,
    extraCertificatesPem: await readCertificates(context, settings),
    findProxy: await loadProxies(host.env),
  }
  return createHttpExchange({
    connections: createConnectionPool(connect, isBatch ? cleanups : undefined),
    maxSilenceMs: values.timeout * 1000,
    cleanups,
  })
}

async function loadProxies(env: Host['env']) {
  if (!Object.keys(env).some((name) => /^(https?|all)_proxy$/i.test(name) && env[name])) return undefined
  const { findProxy } = await import('./proxy.ts')
  return (url: URL) => findProxy(url, env)
}

async function readCertificates({ input, host }: Context, { values, origins }: ResolvedSettings) {
  const { cacert } = values
  if (cacert === undefined) return undefined
  const own = Buffer.from(await input.readFile(cacert)).toString()
  if (!own.includes('-----BEGIN CERTIFICATE-----'))
    throw new CliError('credentials', `${origins.cacert?.label}: ${cacert} has no PEM certificate`)
  // Node ignores NODE_EXTRA_CA_CERTS if other certificates are given, so parley reads this file itself. If
  // the file is unreadable, Node has already printed a warning.
  const { NODE_EXTRA_CA_CERTS } = host.env
  const extra = NODE_EXTRA_CA_CERTS ? await fs.readFile(NODE_EXTRA_CA_CERTS, 'utf8').catch(() => '') : ''
  return `${own}\n${extra}`
}
