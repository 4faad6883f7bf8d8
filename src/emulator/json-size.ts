const [quote, backslash, comma] = [0x22, 0x5c, 0x2c]
const [open, openList, close, closeList] = [0x7b, 0x5b, 0x7d, 0x5d]

/** The most that is checked: beyond it a schema takes too long, or more stack than there is. */
const deepest = 1000
const mostValues = 50_000

/** What a JSON text has too much of, if anything. Looks at each byte once. */
export function findExcess(text: Uint8Array): string | undefined {
  let depth = 0
  let values = 0
  let isString = false
  for (let i = 0; i < text.length; i++) {
    const byte = text[i]
    if (isString) {
      if (byte === backslash) i++
      else if (byte === quote) isString = false
    } else if (byte === quote) isString = true
    else if (byte === open || byte === openList) depth++
    else if (byte === close || byte === closeList) depth--
    else if (byte === comma) values++
    if (depth > deepest) return `more than ${deepest} objects and lists within each other`
    if (values > mostValues) return `more than ${mostValues} values`
  }
  return undefined
}
