import type { CliError } from '../../errors.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { parseReceived, parseReceivedBody } from '../received-json.ts'
import { type LargeJson, parseLargeJson } from './large-json.ts'

/** One JSON value of an answer, and the name of the event that brought it, or `''`. */
type AnswerValue = LargeJson & { event: string }

/** The values of a body that has come whole. */
export interface BodyValues {
  values: AnswerValue[]
  form: 'body' | 'chunks' | 'events'
  /** Why one of them could not be read. */
  failure?: CliError
}

/**
 * Cuts a body into its JSON values. It is one value, a list of chunks, one chunk per line, or an event stream. Long
 * strings stay where they are. Throws a `CliError` where it is none of these.
 */
export function readBodyValues(body: Uint8Array, contentType: string): BodyValues {
  const start = new TextDecoder().decode(body.subarray(0, 64 * 1024)).trimStart()
  const isJson = /^[[{]/.test(start) || contentType.startsWith('text/html')
  const areEvents =
    contentType.startsWith('text/event-stream') || /^(:|data\b|event\b|id\b|retry\b)/.test(start)
  if (!isJson && areEvents) return readEventData(body)
  try {
    return fromBody(parseLargeJson(body, (text) => parseReceivedBody(text, contentType)))
  } catch (error) {
    const lines = start.startsWith('{') ? readLines(body) : undefined
    if (!lines) throw error
    return lines
  }
}

function fromBody({ value, bytesOf }: LargeJson): BodyValues {
  const list = Array.isArray(value) ? value : [value]
  const values = list.map((each: unknown) => ({ value: each, bytesOf, event: '' }))
  return { values, form: list.length === 1 ? 'body' : 'chunks' }
}

function readLines(body: Uint8Array): BodyValues | undefined {
  const values: AnswerValue[] = []
  try {
    for (const line of linesOf(body)) {
      if (!isBlank(line))
        values.push({ ...parseLargeJson(line, (text) => parseReceived(text, 'a line')), event: '' })
    }
  } catch {
    return undefined
  }
  return { values, form: 'chunks' }
}

function readEventData(body: Uint8Array): BodyValues {
  const values: AnswerValue[] = []
  let failure: CliError | undefined
  for (const { event, data } of eventsOf(body)) {
    const first = String.fromCharCode(data.find((byte) => byte > 0x20) ?? 0)
    if (data.length < 20 && /^"?\[done\]"?$/i.test(data.toString().trim())) break
    if (event === 'error' && first !== '{') {
      values.push({ value: data.toString('utf8', 0, 10_000), bytesOf: (text) => Buffer.from(text), event })
      continue
    }
    // Anything else is a keep-alive.
    if (first !== '{' && first !== '[') continue
    try {
      values.push({ ...parseLargeJson(data, (text) => parseReceived(text, 'an event of the stream')), event })
    } catch (error) {
      failure ??= error as CliError
    }
  }
  if (failure) return { values, form: 'events', failure }
  if (values.length === 0) throw notUnderstood('the stream has nothing of a documented shape')
  return { values, form: 'events' }
}

/** The events of a stream. The last one needs no blank line, and a line without a field's name is data itself. */
function* eventsOf(body: Uint8Array): Generator<{ event: string; data: Buffer }> {
  let event = ''
  let lines: Buffer[] = []
  const take = () => {
    const data =
      lines.length === 1 ? (lines[0] as Buffer) : Buffer.concat(lines.flatMap((line) => [line, newline]))
    const taken = { event, data }
    event = ''
    lines = []
    return taken
  }
  for (const line of linesOf(body)) {
    if (line.length === 0) {
      if (lines.length > 0) yield take()
      event = ''
      continue
    }
    const [head = '', field] = /^(data|event|id|retry|)(?::|$) ?/.exec(line.toString('latin1', 0, 8)) ?? []
    if (field === 'data' || field === undefined) lines.push(line.subarray(head.length))
    else if (field === 'event') event = line.toString('utf8', head.length, head.length + 100)
  }
  if (lines.length > 0) yield take()
}

const newline = Buffer.of(0x0a)

const isBlank = (line: Buffer) => !line.some((byte) => byte > 0x20)

/** Lines that end in LF, CR LF or CR, as views. */
function* linesOf(body: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  for (let start = bytes.toString('utf8', 0, 3) === '\ufeff' ? 3 : 0; start < bytes.length; ) {
    const found = bytes.indexOf(0x0a, start)
    const end = found < 0 ? bytes.length : found
    const line = bytes.subarray(start, end)
    yield* splitReturns(line.at(-1) === 0x0d ? line.subarray(0, -1) : line)
    start = end + 1
  }
}

function* splitReturns(line: Buffer): Generator<Buffer> {
  let start = 0
  for (let end = line.indexOf(0x0d); end >= 0; end = line.indexOf(0x0d, start)) {
    yield line.subarray(start, end)
    start = end + 1
  }
  yield line.subarray(start)
}
