import { parse } from './json-body.ts'

/** What stands in a stream beside the answer's own JSON, as it was seen in the field (recorded, 3). */

/** The end of a stream that has no end of its own. */
export const isTerminator = (data: string): boolean =>
  data[0] !== '{' && data.length < longestWord && /^"?\[DONE\]"?$/i.test(data.trim())

/** What only keeps a connection open: there is nothing in it to understand. */
export function isKeepAlive(data: string, event = ''): boolean {
  if (data[0] === '{') return false
  const word = data.trim()
  if (word === '' || /^(ping|heartbeat|keep[-_]?alive)$/i.test(event)) return true
  return (
    word.length < longestWord &&
    /^(null|true|false|-?[\d.]+|"?(ping|pong|heartbeat|keep[-_ ]?alive)"?)$/i.test(word)
  )
}

const longestWord = 100

/** The data of an `error` event: JSON, or the words themselves. */
export function readErrorEvent(data: string): unknown {
  try {
    return parse(data, 'the error')
  } catch {
    return data
  }
}
