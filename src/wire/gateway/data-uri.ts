/** An image in a data URI. */
export interface DataUri {
  mimeType: string
  /** ASCII. */
  base64: Uint8Array
}

/** How much is read of the part before the data. Characters. */
const longestHead = 1000

/** In a text, shorter data is not an image but words about one. Characters. */
const shortestData = 32

/** A whole value that is a data URI in base64, as a view of its bytes; `undefined` for anything else. */
export function parseDataUri(value: Uint8Array): DataUri | undefined {
  const start = Buffer.from(value.buffer, value.byteOffset, Math.min(value.length, longestHead))
  const head = readHead(start.toString('latin1'))
  return head && { mimeType: head.mimeType, base64: value.subarray(head.length) }
}

/** Takes images that are `data:` URIs out of a text, together with Markdown's brackets around them. */
export function splitDataUris(text: string): { text: string; images: DataUri[] } {
  const images: DataUri[] = []
  const rest: string[] = []
  const start = /data:image\//gi
  let done = 0
  for (let found = start.exec(text); found; found = start.exec(text)) {
    const head = readHead(text.slice(found.index, found.index + longestHead))
    if (!head) continue
    const end = endOfData(text, found.index, found.index + head.length)
    if (end - found.index - head.length < shortestData) continue
    const base64 = Buffer.from(text.slice(found.index + head.length, end), 'latin1')
    images.push({ mimeType: head.mimeType, base64 })
    const [before, next] = withoutBrackets(text, text.slice(done, found.index), end)
    rest.push(before)
    done = next
    start.lastIndex = next
  }
  rest.push(text.slice(done))
  return { text: rest.join(''), images }
}

function readHead(text: string): { mimeType: string; length: number } | undefined {
  const comma = text.indexOf(',')
  const head = comma < 0 ? '' : text.slice(0, comma)
  const mimeType = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^;\s]*)*$/i.exec(head)?.[1]
  return mimeType && /;base64$/i.test(head) ? { mimeType, length: comma + 1 } : undefined
}

/** Line breaks can be part of a URI only in brackets or quotes; a bare URI ends at the first. */
function endOfData(text: string, index: number, start: number): number {
  const isClosed = /[("'<]/.test(text[index - 1] ?? '')
  const data = isClosed ? /[\w+/=\r\n-]*/y : /[\w+/=-]*/y
  data.lastIndex = start
  data.test(text)
  return data.lastIndex
}

/**
 * The text before an image, and the place after it. Markdown's brackets around the image are left out; the words in
 * them stay. Each image looks only at the text right after it, so that the time stays linear.
 */
function withoutBrackets(text: string, before: string, end: number): [before: string, next: number] {
  const close = /\s*(?:"[^"]*"\s*)?\)/y
  close.lastIndex = end
  const open = before.endsWith('](') ? before.lastIndexOf('[', before.length - 3) : -1
  const words = before.slice(open + 1, -2)
  if (open < 0 || words.includes(']') || !close.test(text)) return [before, end]
  return [before.slice(0, before[open - 1] === '!' ? open - 1 : open) + words, close.lastIndex]
}
