import { CliError } from '../errors.ts'
import { createJsonSequenceSplitter } from './json/splitter.ts'

export interface SseEvent {
  event: string
  data: string
}

const maxEventLength = 64 * 1024 * 1024

/**
 * Splits a stream into events. A blank line ends an event. A line with a JSON object and without `data:` is
 * an event, too (src/wire/README.md: recorded, 3).
 */
export function createSseDecoder() {
  const text = new TextDecoder()
  const bare = createJsonSequenceSplitter()
  const events: SseEvent[] = []
  let lineParts: string[] = []
  let lineLength = 0
  let endedInCr = false
  let event = ''
  let data: string | undefined
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
    else if (field === 'data') addData(value)
    else if (field !== '' && (bare.isInside() || /^\s*\{/.test(line))) readBareValue(line)
  }

  /**
   * The end marker `[DONE]` ends the event at once, because a service may omit the blank line and stay
   * connected.
   */
  function addData(value: string): void {
    const isFirst = data === undefined
    data = isFirst ? value : `${data}\n${value}`
    // Only the first line can be an end marker. Checking the whole data after each line would be quadratic.
    if (isFirst && isStreamEnd(value)) dispatch()
  }

  /**
   * Reads a line of a JSON value without `data:`. The value ends the event before it, and needs no blank line
   * after it.
   */
  function readBareValue(line: string): void {
    dispatch()
    for (const value of bare.push(`${line}\n`)) events.push({ event: '', data: value })
  }

  function dispatch(): void {
    if (data !== undefined) events.push({ event, data })
    event = ''
    data = undefined
  }

  function readLines(text: string): void {
    if (text === '') return
    const rest = endedInCr && text[0] === '\n' ? text.slice(1) : text
    endedInCr = text.endsWith('\r')
    const lines = rest.split(/\r\n|\n|\r/)
    const last = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = lineParts.join('') + lines[0]
      lineParts = []
      lineLength = 0
    }
    for (const line of lines) takeLine(line)
    lineParts.push(last)
    lineLength += last.length
    if (size + lineLength > maxEventLength) {
      throw new CliError('response', 'the stream sent an event of more than 64 MiB')
    }
  }

  return {
    push(bytes: Uint8Array): SseEvent[] {
      readLines(text.decode(bytes, { stream: true }))
      return events.splice(0)
    },
    isBetweenEvents: () => lineLength === 0 && size === 0,
    end(): { events: SseEvent[]; partial: SseEvent | undefined } {
      readLines(text.decode())
      const last = lineParts.join('')
      if (last !== '') takeLine(last)
      const isCut = size > 0 || (/^[^:]/.test(last) && events.length === 0)
      return { events: events.splice(0), partial: isCut ? { event, data: data ?? bare.rest() } : undefined }
    },
  }
}

export const readSseEvents = (text: string): SseEvent[] => createSseDecoder().push(Buffer.from(`${text}\n\n`))

export function encodeSseEvent({ event, data }: SseEvent): string {
  const head = event === '' ? '' : `event: ${event}\n`
  const lines = data.split('\n').map((text) => `data: ${text}\n`)
  return `${head}${lines.join('')}\n`
}

export const isStreamEnd = (data: string): boolean =>
  data[0] !== '{' && data.length < maxKeepAliveLength && /^"?\[DONE\]"?$/i.test(data.trim())

export function isKeepAliveEvent(data: string, event: string): boolean {
  if (data[0] === '{') return false
  const word = data.trim()
  if (word === '' || /^(ping|heartbeat|keep[-_]?alive)$/i.test(event)) return true
  return (
    word.length < maxKeepAliveLength &&
    /^(null|true|false|-?[\d.]+|"?(ping|pong|heartbeat|keep[-_ ]?alive)"?)$/i.test(word)
  )
}

const maxKeepAliveLength = 100
