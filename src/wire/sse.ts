import { CliError } from '../errors.ts'
import { createSequenceSplitter } from './json/array.ts'

/** One server-sent event: its `event:` line, or `''`, and its `data:` lines joined by newlines. */
export interface SseEvent {
  event: string
  data: string
}

/** The longest event that is taken, in UTF-16 units. */
const longest = 64 * 1024 * 1024

export interface SseDecoder {
  /** Returns the events that are complete now. */
  push(bytes: Uint8Array): SseEvent[]
  /** No event has begun that is not complete. */
  readonly isBetween: boolean
  /** Returns what the last line completed, where it can do without its end, and what is torn. */
  end(): { events: SseEvent[]; torn: SseEvent | undefined }
}

export interface SseOptions {
  decode?: ((bytes: Uint8Array, isLast?: boolean) => string) | undefined
  /** Takes objects that stand on lines of their own, without `data:`, for events too (recorded, 3). */
  takesBare?: boolean | undefined
}

/**
 * Decodes server-sent events from bytes cut anywhere. An event without its blank line at the end is dropped, as
 * the grammar says.
 */
export function createSseDecoder({ decode = unicode(), takesBare = false }: SseOptions = {}): SseDecoder {
  const lineBreak = /\r\n|\n|\r/g
  const bare = createSequenceSplitter()
  let events: SseEvent[] = []
  let line: string[] = []
  let endedInCr = false
  let event = ''
  let data: string | undefined
  let size = 0

  function takeField(text: string): void {
    const colon = text.indexOf(':')
    const field = colon < 0 ? text : text.slice(0, colon)
    const value = colon < 0 ? '' : text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (field === 'event') event = value
    else if (field === 'data') data = data === undefined ? value : `${data}\n${value}`
    else takeOther(text, field)
  }

  function takeOther(text: string, field: string): void {
    if (!takesBare || field === '' || !(bare.isInside || opensBare(text))) return
    // It waits for no blank line, nor does what stands before it.
    dispatch()
    for (const value of bare.push(`${text}\n`)) events.push({ event: '', data: value })
    if (!bare.isInside) size = 0
  }

  function dispatch(): void {
    if (data !== undefined) events.push({ event, data })
    event = ''
    data = undefined
  }

  function takeText(text: string): void {
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
        dispatch()
        size = text.length - start
      }
    }
    if (start < text.length) line.push(text.slice(start))
    if (size > longest) {
      throw new CliError('response', 'the stream sent an event of more than 64 MiB', { sent: 'yes' })
    }
  }

  function takeAll(): SseEvent[] {
    const all = events
    events = []
    return all
  }

  return {
    push(bytes) {
      const text = decode(bytes)
      if (text !== '') takeText(text)
      return takeAll()
    },
    get isBetween() {
      return line.length === 0 && event === '' && data === undefined && !bare.isInside
    },
    end() {
      const text = decode(new Uint8Array(), true)
      if (text !== '') takeText(text)
      const last = line.join('')
      const isField = last !== '' && last[0] !== ':' && !bare.isInside && !opensBare(last)
      takeField(last)
      const isTorn = isField || bare.isInside || event !== '' || data !== undefined
      return { events: takeAll(), torn: isTorn ? { event, data: data ?? bare.rest } : undefined }
    },
  }
}

const opensBare = (line: string): boolean => /^\s*\{/.test(line)

function unicode() {
  const decoder = new TextDecoder()
  return (bytes: Uint8Array, isLast = false) => decoder.decode(bytes, { stream: !isLast })
}

/** Encodes one event; the data's own line breaks become lines of their own. */
export function encodeSseEvent({ event, data }: SseEvent): string {
  const head = event === '' ? '' : `event: ${event}\n`
  const lines = data.split('\n').map((text) => `data: ${text}\n`)
  return `${head}${lines.join('')}\n`
}
