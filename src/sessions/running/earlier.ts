import { isObject, tryParseJson } from '../../wire/json/parse.ts'

/** What the lines of earlier runs say about the tool uses of a session. */
export interface Earlier {
  /** An answer to it was begun, whether it arrived or not. */
  readonly sent: ReadonlySet<string>
  /** Its command was started, whether it ended or not. */
  readonly started: ReadonlySet<string>
}

export const nothingEarlier: Earlier = { sent: new Set(), started: new Set() }

/** Reads a journal; a line that is torn or of something else is ignored. */
export async function readEarlier(
  chunks: AsyncIterable<Uint8Array | string>,
  session: string,
): Promise<Earlier> {
  const sent = new Set<string>()
  const started = new Set<string>()
  for await (const line of linesOf(chunks)) {
    const entry = tryParseJson(line)
    if (!isObject(entry) || entry.session !== session || typeof entry.toolUse !== 'string') continue
    if (entry.event === 'sent') sent.add(entry.toolUse)
    if (entry.event === 'start') started.add(entry.toolUse)
  }
  return { sent, started }
}

async function* linesOf(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  let pieces: Buffer[] = []
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk)
    let start = 0
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      yield Buffer.concat([...pieces, bytes.subarray(start, end)]).toString()
      pieces = []
      start = end + 1
    }
    pieces.push(bytes.subarray(start))
  }
  yield Buffer.concat(pieces).toString()
}
