import { isObject, jsonTooDeepReason, maxJsonDepth } from './json/parse.ts'
import { createJsonScanner, readJsonKey } from './json/scanner.ts'
import {
  createErrorBodyFailure,
  createResponseError,
  createUnexpectedBodyFailure,
  isErrorEnvelope,
} from './problem/problem.ts'
import { parseReceivedJson } from './received-json.ts'

export interface PageCursor {
  name: 'page' | 'after_id'
  value: string
}

export type ListPage = ReturnType<typeof readListPage>

/**
 * Returns the list and, in `texts`, the source text of each element on one line. `hasNextField` is true if the
 * page has a field about a next page, even an empty field. `next` returns the parameter that requests the next
 * page, or `undefined` after the last page. `next` throws a `CliError` if the service announces a next page
 * without a cursor.
 */
export function readListPage(text: string, listName: string) {
  let texts: string[] = []
  // `parseJson` would scan the text once more to check the nesting. `listJsonElements` already checks the
  // nesting.
  const page = parseReceivedJson(text, listName, () => {
    const value: unknown = JSON.parse(text)
    texts = listJsonElements(text, Array.isArray(value) ? undefined : 'data')
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

function findNext(page: Record<string, unknown>, data: unknown[], listName: string): PageCursor | undefined {
  const { next_page: token, has_more: hasMore, last_id: lastId } = page
  if (isFilled(token)) return { name: 'page', value: String(token) }
  if (token !== undefined && token !== null && token !== '')
    throw createResponseError(`${listName}: next_page must be a string or a number`)
  if (hasMore !== true) return undefined
  const value = [lastId, (data.at(-1) as { id?: unknown } | null | undefined)?.id].find(isFilled)
  if (value === undefined)
    throw createResponseError(`${listName} has more items, but no cursor for the next page`)
  return { name: 'after_id', value: String(value) }
}

const isFilled = (value: unknown): boolean =>
  typeof value === 'number' || (typeof value === 'string' && value !== '')

/** Some services filter the events of a page after they read the page, so some empty pages are normal. */
const maxEmptyPages = 20

export function createEndlessListDetector(listName: string) {
  const ids = new Set<string>()
  let empty = 0
  const endlessListError = (why: string) => createResponseError(`${listName} does not end: ${why}`)
  return {
    /**
     * `id` is a text that only one page can have, such as a cursor or the id of the page's first item. Throws a
     * `CliError` with `why` if an earlier page had the same text.
     */
    rejectRepetition(id: string | undefined, why: string): void {
      if (id === undefined) return
      if (ids.has(id)) throw endlessListError(why)
      ids.add(id)
    },
    rejectEmptyPages(itemCount: number): void {
      empty = itemCount === 0 ? empty + 1 : 0
      if (empty > maxEmptyPages) throw endlessListError(`${empty} pages in a row are empty`)
    },
  }
}

/**
 * Returns each element of a list as one line of source text. The list is the whole text or, with `field`,
 * that field of an object. Returns `[]` if the field is not a list. Throws a `SyntaxError` if the text is
 * nested too deep.
 */
export function listJsonElements(validJson: string, field?: string): string[] {
  const text = toOneLineJson(validJson)
  const level = field === undefined ? 1 : 2
  let elements: string[] = []
  let depth = 0
  let fieldStart = 0
  let start: number | undefined
  createJsonScanner()(text, (mark, place) => {
    if (mark === '[' || mark === '{') {
      if (++depth > maxJsonDepth) throw new SyntaxError(jsonTooDeepReason)
      if (depth === 1) fieldStart = place + 1
      if (depth !== level || mark === '{' || (level === 2 && readJsonKey(text, fieldStart) !== field)) return
      // If a field occurs twice, the last one counts, as in `JSON.parse`.
      elements = []
      start = place + 1
    } else if (mark === ',' || mark === ']' || mark === '}') {
      if (depth === level && start !== undefined) {
        const element = text.slice(start, place).trim()
        if (element !== '') elements.push(element)
        start = mark === ',' ? place + 1 : undefined
      }
      if (mark === ',') fieldStart = place + 1
      else depth--
    }
  })
  return elements
}

/** Removes line breaks. JSON has line breaks only between values, because strings escape them. */
export const toOneLineJson = (text: string): string => text.replace(/[\r\n]+/g, '')
