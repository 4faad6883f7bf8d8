import { parseReceived } from './received-json.ts'

/** What stands in a stream beside the answer's own JSON, as it was seen in the field (recorded, 3). */

/** Whether it marks the end of a stream. */
export const isTerminator = (data: string): boolean =>
  data[0] !== '{' && data.length < longestWord && /^"?\[DONE\]"?$/i.test(data.trim())

/** Whether it only keeps the connection open. */
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
    return parseReceived(data, 'the error')
  } catch {
    return data
  }
}
