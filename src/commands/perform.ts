import { toCurl, toDryRun } from '../client/preview.ts'
import { type DraftParts, draftRequest, parseHeader } from '../client/request.ts'
import type { Context } from '../context.ts'
import { CliError, type Sent } from '../errors.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { variableOf } from '../settings/table.ts'
import { startSpinner } from '../terminal/spinner.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { addressOf, authorize } from './credential.ts'
import { chooseExchange } from './exchange.ts'

/**
 * Does with a request what the flags say: shows it, and returns nothing, or sends it and returns the answer.
 * Throws a `CliError` before anything is sent where an address or a credential is missing or may not be used.
 */
export async function perform(
  context: Context,
  settings: ResolvedSettings,
  endpoint: Endpoint,
  parts: Omit<DraftParts, 'address' | 'extraHeaders'>,
): Promise<HttpResponse | undefined> {
  const { flags, output } = context
  const address = settings.values[addressOf(endpoint.service)]
  const draft = draftRequest(endpoint, { ...parts, address, extraHeaders: await readHeaders(context) })
  if (!flags.dryRun && !flags.curl)
    return exchange(context, settings, endpoint, authorize(context, settings, draft))
  await output.write(
    flags.curl ? toCurl(draft, variableOf(draft.credential?.setting ?? 'accessToken')) : toDryRun(draft),
  )
  await output.flush()
  return undefined
}

async function readHeaders({ flags, input }: Context): Promise<Record<string, string>> {
  const headers: [string, string][] = []
  for (const line of flags.header ?? [])
    headers.push(parseHeader((await input.value(line, '--header')).trimEnd()))
  return Object.fromEntries(headers)
}

async function exchange(
  context: Context,
  settings: ResolvedSettings,
  endpoint: Endpoint,
  request: HttpRequest,
): Promise<HttpResponse> {
  const { flags, progress, note } = context
  const { deadline: limit, retries } = settings.values
  const deadline = limit > 0 ? Date.now() + limit * 1000 : 0
  const carry = await chooseExchange(context, settings, deadline)
  const { send } = await import('../client/send.ts')
  const stopWaiting = showWaiting(context)
  try {
    return await send(request, endpoint, {
      exchange: carry,
      policy: { repeat: endpoint.repeat, retries, retryUnknown: flags.retryUnknown ?? false, deadline },
      onRetry(failure, wait) {
        progress.sent = 'no'
        note(`${failure.message}; trying again in ${(wait / 1000).toFixed(1)} s`)
      },
    })
  } catch (error) {
    stopWaiting()
    if (!(error instanceof CliError)) throw error
    const { rawBody, sent = 'no' } = error.details
    if (flags.raw && rawBody) await context.output.write(rawBody)
    const consequence = consequences[sent]
    throw consequence ? error.with({ consequence }) : error
  } finally {
    stopWaiting()
  }
}

const consequences: { [K in Sent]?: string } = {
  no: 'nothing was sent',
  unknown: 'the request was sent; whether it was carried out is not known',
}

function showWaiting({ host, flags, progress }: Context): () => void {
  const isShown = host.stderr.isTTY && !flags.quiet && !flags.verbose && host.env.TERM !== 'dumb'
  if (!isShown) return () => {}
  const spinner = startSpinner(host.stderr, 'waiting for the answer')
  const stop = () => {
    spinner.stop()
    progress.cleanups.delete(stop)
  }
  progress.cleanups.add(stop)
  return stop
}
