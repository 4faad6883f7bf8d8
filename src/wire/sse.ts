import { CliError } from '../errors.ts'

/** One server-sent event: its `event:` line, or `''`, and its `data:` lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/** The longest event that is taken, in UTF-16 units. */
const longest = 64 * 1024 * 1024

/**
 * Decodes server-sent events from bytes cut anywhere. Each `push` returns the events it completed; an event
 * without its blank line at the end is dropped, as the grammar says.
 */
export function createSseDecoder(): { push(bytes: Uint8Array): SseEvent[] } {
  const decoder = new TextDecoder()
  const lineBreak = /\r\n|\n|\r/g
  let line: string[] = []
  let endedInCr = false
  let event = ''
  let data: string | undefined
  let size = 0

  function takeField(text: string): void {
    const colon = text.indexOf(':')
    const field = colon < 0 ? text : text.slice(0, colon)
    if (field !== 'data' && field !== 'event') return
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'event') event = value
    else data = data === undefined ? value : `${data}\n${value}`
  }

  function push(bytes: Uint8Array): SseEvent[] {
    const text = decoder.decode(bytes, { stream: true })
    if (text === '') return []
    const events: SseEvent[] = []
    let start = endedInCr && text[0] === '\n' ? 1 : 0
    endedInCr = text.endsWith('\r')
    size += text.length
    lineBreak.lastIndex = start
    for (let found = lineBreak.exec(text); found; found = lineBreak.exec(text)) {
      const tail = text.slice(start, found.index)
      const whole = line.length > 0 ? line.join('') + tail : tail
      line = []
      start = lineBreak.lastIndex
      if (whole !== '') takeField(whole)
      else {
        if (data !== undefined) events.push({ event, data })
        event = ''
        data = undefined
        size = text.length - start
      }
    }
    if (start < text.length) line.push(text.slice(start))
    if (size > longest) {
      throw new CliError('response', 'the stream sent an event of more than 64 MiB', { sent: 'yes' })
    }
    return events
  }

  return { push }
}

/** Encodes one event; the data's own line breaks become lines of their own. */
export function encodeSseEvent({ event, data }: SseEvent): string {
  const head = event === '' ? '' : `event: ${event}\n`
  const lines = data.split('\n').map((text) => `data: ${text}\n`)
  return `${head}${lines.join('')}\n`
}
