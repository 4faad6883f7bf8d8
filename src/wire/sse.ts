import { CliError } from '../errors.ts'
import { createSequenceSplitter } from './json/splitter.ts'

/** One server-sent event: its `event:` line, or `''`, and its `data:` lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/** The longest event that is accepted, in UTF-16 units. */
const longest = 64 * 1024 * 1024

/**
 * Decodes server-sent events from bytes cut anywhere. An event without its blank line at the end is dropped, as the
 * standard says. Objects on lines of their own, without `data:`, are events too (recorded, 3).
 */
export function createSseDecoder() {
  const utf8 = new TextDecoder()
  const bare = createSequenceSplitter()
  const events: SseEvent[] = []
  /** The pieces of a line that has not ended, and their length. */
  let kept: string[] = []
  let waiting = 0
  let endedInCr = false
  let event = ''
  let data: string | undefined
  let id: string | undefined
  let lastId: string | undefined
  /** Of the event that has begun and is not complete; 0 if there is none. */
  let size = 0

  function takeLine(line: string): void {
    size += line.length + 1
    if (line === '') dispatch()
    else takeField(line)
    if (event === '' && data === undefined && !bare.isInside()) size = 0
  }

  function takeField(line: string): void {
    const colon = line.indexOf(':')
    const field = colon < 0 ? line : line.slice(0, colon)
    const start = field.length + 1
    const value = line.slice(line[start] === ' ' ? start + 1 : start)
    if (field === 'event') event = value
    else if (field === 'id') id = value
    else if (field === 'data') addData(value)
    else if (field !== '' && (bare.isInside() || /^\s*\{/.test(line))) takeBare(line)
  }

  /** What marks the end of a stream may come without a blank line, and the connection stay open. */
  function addData(value: string): void {
    const isFirst = data === undefined
    data = isFirst ? value : `${data}\n${value}`
    // Not of all that came so far: to look into a text that is still put together costs as much as it is long.
    if (isFirst && isTerminator(value)) dispatch()
  }

  /** A bare value waits for no blank line, nor does the event before it. */
  function takeBare(line: string): void {
    dispatch()
    for (const value of bare.push(`${line}\n`)) events.push({ event: '', data: value })
  }

  function dispatch(): void {
    if (data !== undefined) events.push({ event, data })
    lastId = id
    event = ''
    data = undefined
  }

  /** Lines end in LF, CR LF or CR. */
  function takeText(text: string): void {
    if (text === '') return
    const rest = endedInCr && text[0] === '\n' ? text.slice(1) : text
    endedInCr = text.endsWith('\r')
    const lines = rest.split(/\r\n|\n|\r/)
    const last = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = kept.join('') + lines[0]
      kept = []
      waiting = 0
    }
    for (const line of lines) takeLine(line)
    kept.push(last)
    waiting += last.length
    if (size + waiting > longest) {
      throw new CliError('response', 'the stream sent an event of more than 64 MiB')
    }
  }

  return {
    /** Returns the events that are complete now. */
    push(bytes: Uint8Array): SseEvent[] {
      takeText(utf8.decode(bytes, { stream: true }))
      return events.splice(0)
    },
    /** The last `id:` line of a complete event. A new connection may continue from there. */
    lastId: () => lastId,
    /** Nothing is waiting for more bytes. */
    isBetween: () => waiting === 0 && size === 0,
    /** Returns the events that the last line completes, and the one that was cut off. */
    end(): { events: SseEvent[]; torn: SseEvent | undefined } {
      takeText(utf8.decode())
      const last = kept.join('')
      if (last !== '') takeLine(last)
      const isTorn = size > 0 || (/^[^:]/.test(last) && events.length === 0)
      return { events: events.splice(0), torn: isTorn ? { event, data: data ?? bare.rest() } : undefined }
    },
  }
}

export type SseDecoder = ReturnType<typeof createSseDecoder>

/** The events of a stream that has come whole; the last one needs no blank line. */
export const readSseEvents = (text: string): SseEvent[] => createSseDecoder().push(Buffer.from(`${text}\n\n`))

/** Encodes one event; each line of the data becomes a `data:` line. */
export function encodeSseEvent({ event, data }: SseEvent): string {
  const head = event === '' ? '' : `event: ${event}\n`
  const lines = data.split('\n').map((text) => `data: ${text}\n`)
  return `${head}${lines.join('')}\n`
}

/** What stands in a stream beside the answer's own JSON, as it was seen in the field (recorded, 3). */

/** Whether it marks the end of a stream. */
export const isTerminator = (data: string): boolean =>
  data[0] !== '{' && data.length < longestWord && /^"?\[DONE\]"?$/i.test(data.trim())

/** Whether it only keeps the connection open. */
export function isKeepAlive(data: string, event: string): boolean {
  if (data[0] === '{') return false
  const word = data.trim()
  if (word === '' || /^(ping|heartbeat|keep[-_]?alive)$/i.test(event)) return true
  return (
    word.length < longestWord &&
    /^(null|true|false|-?[\d.]+|"?(ping|pong|heartbeat|keep[-_ ]?alive)"?)$/i.test(word)
  )
}

const longestWord = 100
