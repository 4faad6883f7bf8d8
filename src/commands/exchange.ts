import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { redactHeaders } from '../client/preview.ts'
import type { Context } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import { demoName } from '../settings/profiles.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { oneLine } from '../terminal/escape.ts'
import { redact } from '../terminal/failure.ts'
import type { Exchange } from '../wire/exchange.ts'

/** What carries this run's requests: the network, or for the demo profile the emulator. `deadline` as in `ExchangeOptions`. */
export async function chooseExchange(
  context: Context,
  settings: ResolvedSettings,
  deadline: number,
): Promise<Exchange> {
  const exchange = context.host.exchange ?? (await openExchange(context, settings, deadline))
  return context.flags.verbose ? logged(exchange, context) : exchange
}

async function openExchange(
  { host, progress, note }: Context,
  { values, profile }: ResolvedSettings,
  deadline: number,
): Promise<Exchange> {
  if (profile === demoName) {
    note('the demo profile: answers come from the built-in emulator, no model is called')
    const { createEmulator } = await import('../emulator/emulator.ts')
    return createEmulator({})
  }
  const { createHttpExchange } = await import('../client/exchange.ts')
  return createHttpExchange({
    connect: { timeout: values.connectTimeout * 1000, ca: await readCertificates(values.cacert, host.cwd) },
    timeout: values.timeout * 1000,
    deadline,
    onProgress(reached) {
      progress.sent = reached === 'sent' ? 'unknown' : 'yes'
    },
  })
}

async function readCertificates(path: string | undefined, cwd: string): Promise<string | undefined> {
  if (path === undefined) return undefined
  try {
    return await readFile(resolve(cwd, path), 'utf8')
  } catch (error) {
    throw new CliError('file', `${path}: ${fileProblem(error)}`)
  }
}

/** Tells on stderr what goes out and comes back, secrets redacted. */
function logged(exchange: Exchange, { tell, progress }: Context): Exchange {
  const log = (mark: '>' | '<', lines: string[]) => {
    for (const line of lines) tell(`${mark} ${oneLine(redact(line, progress.secrets), 4000)}`)
  }
  const lines = (headers: Record<string, string>) =>
    Object.entries(redactHeaders(headers)).map(([name, value]) => `${name}: ${value}`)

  return async (request) => {
    const start = Date.now()
    const size = request.body ? [`(${request.body.length} bytes)`] : []
    log('>', [`${request.method} ${request.url}`, ...lines(request.headers), ...size])
    const response = await exchange(request)
    const took = `after ${Date.now() - start} ms`
    log('<', [`${response.status} ${response.statusText} (${took})`, ...lines(response.headers)])
    return response
  }
}
