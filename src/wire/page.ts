import { isObject, jsonTooDeepReason, maxJsonDepth } from './json/parse.ts'
import { createJsonScanner, readJsonKey, skipBlanks } from './json/scanner.ts'
import {
  createErrorBodyFailure,
  createResponseError,
  createUnexpectedBodyFailure,
  isErrorEnvelope,
} from './problem/problem.ts'
import { parseReceivedJson } from './received-json.ts'

export interface Page {
  items: readonly unknown[]
  /** Id of the first item, if only one page can begin with this id. */
  firstId?: string | undefined
  /** Returns the query field that requests the next page, or `undefined` after the last page. */
  next(): string | undefined
}

/**
 * Parses one page of a list. `data` has the elements, and `texts` the source text of each element on one
 * line. `hasNextField` is true if the page has a field about a next page, even an empty field. `next` throws a
 * `CliError` if the service announces a next page without a cursor.
 */
export function readListPage(body: Uint8Array, listName: string) {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  let texts: string[] = []
  const page = parseReceivedJson(bytes, listName, () => {
    const { elements, rest } = splitJsonList(bytes, 'data')
    const value: unknown = JSON.parse(rest)
    const list = isObject(value) ? value.data : value
    for (const element of elements) {
      const parsed: unknown = JSON.parse(element)
      if (Array.isArray(list)) list.push(parsed)
    }
    texts = elements.map(toElementLine)
    return value
  })
  if (isErrorEnvelope(page)) throw createErrorBodyFailure(page)
  if (Array.isArray(page))
    return { data: page as unknown[], texts, hasNextField: false, next: () => undefined }
  const fields: Record<string, unknown> = isObject(page) ? page : {}
  const { data } = fields
  if (data === undefined || data === null)
    throw createUnexpectedBodyFailure(page, `${listName} has no field 'data'`)
  if (!Array.isArray(data)) throw createResponseError(`${listName}: data must be a list`)
  const hasNextField = ['next_page', 'has_more'].some((mark) => Object.hasOwn(fields, mark))
  return { data: data as unknown[], texts, hasNextField, next: () => findNext(fields, data, listName) }
}

function findNext(page: Record<string, unknown>, data: unknown[], listName: string): string | undefined {
  const { next_page: token, has_more: hasMore, last_id: lastId } = page
  if (isFilled(token)) return formatQueryField('page', token)
  if (token !== undefined && token !== null && token !== '')
    throw createResponseError(`${listName}: next_page must be a string or a number`)
  if (hasMore !== true) return undefined
  const value = [lastId, (data.at(-1) as { id?: unknown } | null | undefined)?.id].find(isFilled)
  if (value === undefined)
    throw createResponseError(`${listName} has more items, but no cursor for the next page`)
  return formatQueryField('after_id', value)
}

const isFilled = (value: unknown): value is string | number =>
  typeof value === 'number' || (typeof value === 'string' && value !== '')

/** Replaces lone surrogates, because `encodeURIComponent` throws for them. */
const formatQueryField = (name: string, value: string | number): string =>
  `${name}=${encodeURIComponent(String(value).toWellFormed())}`

/** Some services filter the events of a page after they read the page, so some empty pages are normal. */
const maxEmptyPages = 20

/** Yields the pages of a list. Throws a `CliError` if the list does not end. */
export async function* readPages<P extends Page>(
  listName: string,
  read: (cursor?: string) => Promise<P>,
): AsyncGenerator<P> {
  const endlessListError = (why: string) => createResponseError(`${listName} does not end: ${why}`)
  const marks = new Set<string>()
  const requireNew = (mark: string | undefined) => {
    if (mark === undefined) return
    if (marks.has(mark)) throw endlessListError('its pages repeat')
    marks.add(mark)
  }
  let empty = 0
  for (let cursor: string | undefined; ; ) {
    const page = await read(cursor)
    requireNew(page.firstId)
    yield page
    cursor = page.next()
    if (cursor === undefined) return
    requireNew(cursor)
    empty = page.items.length === 0 ? empty + 1 : 0
    if (empty > maxEmptyPages) throw endlessListError(`${empty} pages in a row are empty`)
  }
}

/**
 * Returns each element of a list as one line of source text. The list is the whole text or, of an object, the
 * field `field`. Returns `[]` if the field is not a list. Throws a `SyntaxError` if the text is nested too deep.
 */
export const listJsonElements = (validJson: string, field: string): string[] =>
  splitJsonList(Buffer.from(validJson), field).elements.map(toElementLine)

/**
 * Splits JSON, which may be invalid, into the elements of a list and `rest`. The list is the whole JSON or,
 * of an object, the field `field`. `rest` is the JSON with an empty list instead of this list. If `rest` and
 * each element are valid, the JSON is valid. The bytes are decoded in pieces, because V8 would free the
 * string of a whole page late.
 */
function splitJsonList(json: Buffer, field: string): { elements: string[]; rest: string } {
  const scan = createJsonScanner()
  let elements: string[] = []
  /** Depth of the list's elements: 1 if the JSON is a list, 2 if it is an object. */
  let level = 0
  let depth = 0
  let fieldStart = 0
  let listStart = json.length
  let listEnd = json.length
  /** `undefined` outside of the list. */
  let elementStart: number | undefined
  let pieceStart = 0
  const visit = (mark: string, offset: number) => {
    const place = pieceStart + offset
    if (mark === '[' || mark === '{') {
      if (++depth > maxJsonDepth) throw new SyntaxError(jsonTooDeepReason)
      level ||= mark === '[' ? 1 : 2
      if (depth === 1) fieldStart = place + 1
      if (depth !== level || mark === '{') return
      if (level === 2 && readJsonKey(json.toString('utf8', fieldStart, place), 0) !== field) return
      // If a field occurs twice, its last list is used, as in `JSON.parse`.
      elements = []
      elementStart = listStart = place + 1
    } else if (mark === ',' || mark === ']' || mark === '}') {
      if (depth === level && elementStart !== undefined) {
        const element = json.toString('utf8', elementStart, place)
        const isEmpty = skipBlanks(element, 0) === element.length
        if (mark === ',' || elements.length > 0 || !isEmpty) elements.push(element)
        elementStart = mark === ',' ? place + 1 : undefined
        listEnd = place
      }
      // After a bracket, this line only limits the time: without it, invalid JSON such as `{"a":[][][]` would
      // take quadratic time.
      fieldStart = place + 1
      if (mark !== ',') depth--
    }
  }
  // Brackets and commas are ASCII, so the Latin-1 text has each at its byte offset, even in invalid UTF-8.
  for (; pieceStart < json.length; pieceStart += pieceBytes)
    scan(json.toString('latin1', pieceStart, pieceStart + pieceBytes), visit)
  const decode = (bytes: Buffer) => new TextDecoder().decode(bytes)
  return { elements, rest: decode(json.subarray(0, listStart)) + json.toString('utf8', listEnd) }
}

const pieceBytes = 32 * 1024

const toElementLine = (element: string) => toOneLineJson(element).trim()

/** Removes line breaks. JSON has line breaks only between values, because strings escape them. */
export const toOneLineJson = (text: string): string => text.replace(/[\r\n]+/g, '')
