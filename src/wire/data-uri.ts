/** An image that stood in a text. */
export interface DataUri {
  mimeType: string
  /** ASCII. */
  base64: Uint8Array
}

const head = /data:(image\/[\w.+-]+)(?:;[\w.+-]+=[^;,\s]*)*;base64,/gi

/** Takes the images out of a text that holds them as `data:` URIs, also in Markdown, whose brackets go too. */
export function splitDataUris(text: string): { text: string; images: DataUri[] } {
  const images: DataUri[] = []
  const rest: string[] = []
  let done = 0
  head.lastIndex = 0
  for (let found = head.exec(text); found; found = head.exec(text)) {
    // Only where something closes the URI can line breaks belong to it; a bare one ends at the first.
    const isClosed = /[("'<]/.test(text[found.index - 1] ?? '')
    const data = isClosed ? /[\w+/=\r\n-]*/y : /[\w+/=-]*/y
    const start = head.lastIndex
    data.lastIndex = start
    data.test(text)
    images.push({
      mimeType: found[1] as string,
      base64: Buffer.from(text.slice(start, data.lastIndex), 'latin1'),
    })
    rest.push(text.slice(done, found.index))
    done = data.lastIndex
    head.lastIndex = done
  }
  rest.push(text.slice(done))
  const left = rest.join('')
  return {
    text: images.length > 0 ? left.replace(/!?\[([^\]]*)\]\(\s*(?:"[^"]*"\s*)?\)/g, '$1') : left,
    images,
  }
}
