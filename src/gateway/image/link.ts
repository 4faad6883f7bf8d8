import { rescue } from '../../content/rescue.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { sendRequest } from '../../http/attempts.ts'
import { oneLine } from '../../io/escape.ts'
import type { Endpoint } from '../../wire/endpoints.ts'
import { type Exchange, readBody } from '../../wire/exchange.ts'

/** An image's bytes, and its kind as the service says it. */
export interface Image {
  bytes: Uint8Array
  mimeType: string | undefined
}

/** What fetches the images that an answer only links to. */
export interface LinkClient {
  exchange(): Promise<Exchange>
  retries: number
  /** By the forward clock; Infinity for none. */
  deadline: number
}

/** Reading a link can be repeated as often as needed. */
const link: Endpoint = { service: 'gateway', method: 'GET', path: '', repeat: 'always' }

/**
 * Fetches an image by its link, over https only and without any credential. Throws a `CliError` of kind `response` that
 * shows the link and says where it is kept.
 */
export async function fetchLink(context: Context, uri: string, client: LinkClient): Promise<Image> {
  try {
    return await fetchOnce(context, uri, client)
  } catch (error) {
    throw error instanceof CliError ? await rescueLinks(context, error, [uri]) : error
  }
}

async function fetchOnce(
  context: Context,
  uri: string,
  { exchange, retries, deadline }: LinkClient,
): Promise<Image> {
  const why = whyNotFetched(uri)
  if (why !== undefined) throw notFetched(uri, why)
  const headers = { Accept: 'image/*', 'Accept-Encoding': 'identity', 'User-Agent': 'parley-cli' }
  try {
    const call = context.calls.begin(link, { isOneOfMany: true })
    const request = { method: 'GET', url: new URL(uri).href, headers }
    const response = await sendRequest(request, {
      endpoint: link,
      call,
      exchange: await exchange(),
      policy: { retries, retryUnknown: false, deadline },
      timers: context.timers,
      onRetry: (failure) => context.note(`the image's link: ${reasonOf(failure)}; trying again`),
    })
    return { bytes: await readBody(response.body), mimeType: response.headers['content-type'] }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    throw notFetched(uri, reasonOf(error))
  }
}

/** Why a link is never fetched; `undefined` if it may be. */
export function whyNotFetched(uri: string): string | undefined {
  const url = URL.canParse(uri) ? new URL(uri) : undefined
  if (url?.protocol !== 'https:') return 'only https links are fetched'
  return url.username || url.password ? 'it contains a user name or password' : undefined
}

/** The gateway did its part: every failure here is about the link. */
const reasonOf = ({ message, details: { status } }: CliError) =>
  status === undefined ? message : `its host answered ${status}`

const notFetched = (uri: string, why: string) =>
  new CliError('response', `an image's link could not be fetched: ${why}: ${oneLine(uri, 500)}`)

/** A link on one line, with its control characters encoded. */
export const encodeControls = (uri: string) => uri.replace(/[\x00-\x1f\x7f]/g, encodeURIComponent)

/** Keeps links in a file: a message may cut a link, or redact what looks like a secret in it. */
export function rescueLinks(context: Context, failure: CliError, uris: readonly string[]): Promise<CliError> {
  const bytes = Buffer.from(uris.map((uri) => `${encodeControls(uri)}\n`).join(''))
  return rescue(context, failure, {
    bytes,
    extension: 'txt',
    what: uris.length === 1 ? 'the link' : 'the links',
  })
}
