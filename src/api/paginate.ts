import { CliError } from '../errors.ts'
import type { Caller } from '../http/call.ts'
import type { Output } from '../io/output.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import { tryDecodeUtf8 } from '../io/utf8.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf } from '../settings/service-settings.ts'
import { type Cursor, createPageTrail, type Page, readList, readPage } from '../wire/page.ts'
import { notUnderstood } from '../wire/problem/problem.ts'
import { type ApiRequest, readPath } from './request.ts'

/** Prints the items of all pages of a list, each as it is spelled, on a line of its own. Throws a `CliError`. */
export async function paginate(
  caller: Caller,
  { endpoint, parts, settings }: ApiRequest & { settings: ResolvedSettings },
  output: Output,
): Promise<void> {
  const printer = createRawPrinter(output)
  const trail = createPageTrail('the list')
  const address = settings.values[addressOf(endpoint.service)]
  let next = { path: endpoint.path, query: parts.query }
  let by = 'next_page'
  const add = ({ texts }: Page) => {
    for (const item of texts) printer.add(`${item}\n`)
  }
  for (;;) {
    trail.addMark(`${next.path}?${next.query ?? ''}`, `${by} repeats`)
    const request = { ...parts, query: next.query }
    const page = await caller
      .call({ ...endpoint, path: next.path }, request, ({ body }) => readList(body, read, add))
      .catch(async (error: unknown) => {
        await printer.end()
        throw error
      })
    add(page)
    await printer.write()
    const cursor = page.next()
    if (!cursor) return printer.end()
    trail.addPage(page.texts.length)
    by = cursor.name === 'page' ? 'next_page' : 'last_id'
    next = follow(next, cursor, address)
  }
}

const read = (bytes: Uint8Array) => readPage(decode(bytes), 'the list')

function decode(bytes: Uint8Array): string {
  const text = tryDecodeUtf8(bytes)
  if (text === undefined) throw notUnderstood('the list is not UTF-8 text')
  return text
}

/** A page may be named by a token, or by its whole URL, which must be the service's. */
function follow(
  { path, query = '' }: { path: string; query: string | undefined },
  { name, value }: Cursor,
  address: string | undefined,
): { path: string; query: string | undefined } {
  if (/^https?:\/\//i.test(value)) return followAddress(value, address)
  const kept = query.split('&').filter((field) => field !== '' && !/^(page|after_id)(=|$)/.test(field))
  return { path, query: [...kept, `${name}=${encodeURIComponent(value)}`].join('&') }
}

function followAddress(url: string, address: string | undefined) {
  try {
    return readPath(url, address)
  } catch (error) {
    throw error instanceof CliError ? notUnderstood(`next_page cannot be followed: ${error.message}`) : error
  }
}
