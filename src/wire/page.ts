import { collectBody } from './exchange.ts'
import { isObject } from './json/parse.ts'
import { createWalk, keyAt } from './json/scanner.ts'
import { failureInBody, failureInstead, isErrorEnvelope, notUnderstood } from './problem/problem.ts'
import { parseReceived } from './received-json.ts'

/** How the page after this one is asked for: a parameter of the query. */
export interface Cursor {
  name: 'page' | 'after_id'
  value: string
}

/** A page of a list. */
export interface Page {
  data: unknown[]
  /** The same as it is spelled, each on one line. */
  texts: string[]
  /** It says whether there is more. */
  isMarked: boolean
  /** How to go on, if there is more. Throws a `CliError` if the page says that there is more, but not how to ask. */
  next(): Cursor | undefined
}

/**
 * Reads a body with a list by `read`. Of one that breaks off, `keep` is given what `read` makes of the elements that came
 * whole, before the failure is thrown.
 */
export async function readList<T>(
  body: AsyncIterable<Uint8Array>,
  read: (bytes: Uint8Array) => T,
  keep: (start: T) => void,
): Promise<T> {
  const collected = collectBody()
  try {
    for await (const chunk of body) collected.add(chunk)
    return read(collected.bytes())
  } catch (error) {
    try {
      const elements = wholeElements(new TextDecoder().decode(collected.bytes()))
      if (elements.length > 0) keep(read(Buffer.from(`[${elements.join(',')}]`)))
    } catch {
      // It is not the beginning of such a list.
    }
    throw error
  }
}

/** Those of a list, bare or in the field `data`, that was cut off. A number or a word at its end may not be whole. */
function wholeElements(text: string): string[] {
  const start = /[}\]"]\s*$/.test(text) ? `${text},` : text
  return [...elementsOf(start), ...elementsOf(start, 'data')]
}

/** Reads one page of a list, or a list that is not paged; `name` is what messages call it. Throws a `CliError`. */
export function readPage(text: string, name: string): Page {
  const page = parseReceived(text, name)
  if (isErrorEnvelope(page)) throw failureInBody(page)
  if (Array.isArray(page)) {
    return { data: page, texts: elementsOf(text), isMarked: false, next: () => undefined }
  }
  const fields: Record<string, unknown> = isObject(page) ? page : {}
  const { data } = fields
  if (data === undefined || data === null) throw failureInstead(page, `${name} has no data`)
  if (!Array.isArray(data)) throw notUnderstood(`${name}: data must be a list`)
  const isMarked = ['next_page', 'has_more'].some((mark) => Object.hasOwn(fields, mark))
  return { data, texts: elementsOf(text, 'data'), isMarked, next: () => nextOf(fields, data, name) }
}

/** A page says that there is more by the next one's token or number, or by the id to go on after. */
function nextOf(page: Record<string, unknown>, data: unknown[], name: string): Cursor | undefined {
  const { next_page: token, has_more: hasMore, last_id: lastId } = page
  if (isFilled(token)) return { name: 'page', value: String(token) }
  if (token !== undefined && token !== null && token !== '')
    throw notUnderstood(`${name}: next_page must be a text or a number`)
  if (hasMore !== true) return undefined
  const value = [lastId, (data.at(-1) as { id?: unknown } | null | undefined)?.id].find(isFilled)
  if (value === undefined) throw notUnderstood(`${name} has more, but does not say how to ask for it`)
  return { name: 'after_id', value: String(value) }
}

const isFilled = (value: unknown): boolean =>
  typeof value === 'number' || (typeof value === 'string' && value !== '')

/** How many pages in a row may be empty: a service may filter its pages after it made them. */
const mostEmpty = 20

/** The pages of a list that were read so far: finds a list that does not end. */
export function createPageTrail(list: string) {
  const marks = new Set<string>()
  let empty = 0
  const endless = (why: string) => notUnderstood(`${list} does not end: ${why}`)
  return {
    /** Throws a `CliError` if this mark of a page was there before; `why` says what that means. */
    addMark(mark: string | undefined, why: string): void {
      if (mark === undefined) return
      if (marks.has(mark)) throw endless(why)
      marks.add(mark)
    },
    /** Throws a `CliError` if too many pages in a row have no items. */
    addPage(items: number): void {
      empty = items === 0 ? empty + 1 : 0
      if (empty > mostEmpty) throw endless(`${empty} pages in a row are empty`)
    },
  }
}

/**
 * The elements of a list, or of a list in a field of an object, as they are spelled, each on one line; none if the field is
 * not a list. `JSON.parse` must have accepted the text, which may be long: it is gone over once.
 */
export function elementsOf(text: string, field?: string): string[] {
  const level = field === undefined ? 1 : 2
  let elements: string[] = []
  let depth = 0
  let fieldStart = 0
  /** Where the element begins, within the list. */
  let start: number | undefined
  createWalk()(text, (mark, place) => {
    if (mark === '[' || mark === '{') {
      depth++
      if (depth === 1 && level === 2 && mark === '[') return true
      if (depth === 1) fieldStart = place + 1
      // Of fields with one name the last counts.
      if (depth === level && mark === '[' && (depth === 1 || keyAt(text, fieldStart) === field)) {
        elements = []
        start = place + 1
      }
    } else if (mark === ',' && depth === 1 && level === 2) fieldStart = place + 1
    else if (mark === ',' || mark === ']' || mark === '}') {
      if (depth === level && start !== undefined) {
        const element = text.slice(start, place).trim()
        if (element !== '') elements.push(onOneLine(element))
        start = mark === ',' ? place + 1 : undefined
      }
      if (mark !== ',') depth--
    }
    return false
  })
  return elements
}

/** In JSON a line break is between tokens only: inside text it is an escape. */
export const onOneLine = (text: string): string => text.replace(/[\r\n]+/g, '')
