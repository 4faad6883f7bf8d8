import type { Context } from '../../context.ts'
import { decodeBase64 } from '../../wire/gateway/base64.ts'
import type { FoundImage } from '../../wire/gateway/found-images.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'
import { fetchLink, type LinkClient } from './link.ts'
import { rescue } from './rescue.ts'
import type { Image } from './save.ts'

/** An image's bytes, decoded or fetched. Throws a `CliError`. */
export async function load(context: Context, image: FoundImage, client: LinkClient): Promise<Image> {
  if ('uri' in image) return fetchLink(context, image.uri, client)
  const bytes = decodeBase64(image.base64)
  if (bytes) return { bytes, mimeType: image.mimeType }
  const failure = notUnderstood("an image's data is not proper base64")
  throw await rescue(context, failure, { bytes: image.base64, extension: 'txt', what: 'it' })
}
