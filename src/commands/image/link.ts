import { send } from '../../client/send.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { oneLine } from '../../terminal/escape.ts'
import type { Endpoint } from '../../wire/endpoints.ts'
import { collectLong } from '../../wire/exchange.ts'
import { chooseExchange } from '../exchange.ts'
import { keep } from './recovery.ts'
import type { Image } from './save.ts'

/** A link may be asked as often as need be. */
const link: Endpoint = { service: 'gateway', method: 'GET', path: '', repeat: 'always' }

/**
 * Fetches an image by its link, over https only and without any credential. `deadline` is milliseconds since the
 * epoch, 0 for none. Throws a `CliError` of kind `response` that shows the link, which is kept.
 */
export async function fetchLink(
  context: Context,
  settings: ResolvedSettings,
  link: { uri: string; deadline: number },
): Promise<Image> {
  try {
    return await fetchOnce(context, settings, link)
  } catch (error) {
    throw error instanceof CliError ? await keepLinks(context, error, [link.uri]) : error
  }
}

async function fetchOnce(
  context: Context,
  settings: ResolvedSettings,
  { uri, deadline }: { uri: string; deadline: number },
): Promise<Image> {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url?.protocol !== 'https:') throw notFetched(uri, 'only https links are')
  if (url.username || url.password) throw notFetched(uri, 'it holds a user name or password')
  const headers = { Accept: 'image/*', 'Accept-Encoding': 'identity', 'User-Agent': 'parley-cli' }
  try {
    const response = await send({ method: 'GET', url: url.href, headers }, link, {
      exchange: await chooseExchange(context, settings, deadline),
      policy: { repeat: link.repeat, retries: settings.values.retries, retryUnknown: false, deadline },
      timers: context.timers,
      onRetry: (failure) => context.note(`the image's link: ${reasonOf(failure)}; trying again`),
    })
    return { bytes: await collectLong(response.body), mimeType: response.headers['content-type'] }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    throw notFetched(uri, reasonOf(error))
  }
}

/** The gateway paid its part: whatever went wrong here, it is about the link. */
const reasonOf = ({ message, details: { status } }: CliError) =>
  status === undefined ? message : `its host answered ${status}`

const notFetched = (uri: string, why: string) =>
  new CliError('response', `an image's link could not be fetched: ${why}: ${oneLine(uri, 500)}`)

/** A link is no place for control characters: it stays one, and one line, with them encoded. */
export const onOneLine = (uri: string) => uri.replace(/[\x00-\x1f\x7f]/g, encodeURIComponent)

/** A message may cut a link, or take out of it what looks like a secret. */
export function keepLinks(context: Context, failure: CliError, uris: readonly string[]): Promise<CliError> {
  const bytes = Buffer.from(uris.map((uri) => `${onOneLine(uri)}\n`).join(''))
  return keep(context, failure, {
    bytes,
    extension: 'txt',
    what: uris.length === 1 ? 'the link' : 'the links',
  })
}
