import { usage } from '../errors.ts'

/** How often a path is decoded to find out what a server may make of it. */
const mostDecodings = 5

/** A path and what follows its question mark, as they are spelled. */
export interface Path {
  names: string
  query: string | undefined
}

/**
 * The path of a service that is asked for. `address` is the service's own, or `undefined` if none is set. Throws a
 * usage error for a path that a server could take for another one.
 */
export function readPath(given: string, address: string | undefined): Path {
  if (given.trim() === '') throw usage('the path is empty')
  const path = withSlash(/^[a-z][a-z0-9+.-]*:/i.test(given) ? withoutAddress(given, address) : given)
  const [names = '', query] = splitOnce(path)
  if (path.includes('#')) throw usage(`${shorten(given)}: a fragment (#) is never sent: spell it %23`)
  if (hasDotSegment(names)) throw usage(`${shorten(given)}: a path must not have the segments . and ..`)
  if (!isUnchanged(path)) {
    throw usage(`${shorten(given)}: has characters that are not allowed in a path: percent-encode them`)
  }
  return { names, query }
}

function splitOnce(path: string): string[] {
  const mark = path.indexOf('?')
  return mark < 0 ? [path] : [path.slice(0, mark), path.slice(mark + 1)]
}

const withSlash = (path: string) => (path.startsWith('/') ? path : `/${path}`)

const shorten = (text: string) => (text.length > 200 ? `${text.slice(0, 199)}…` : text)

/** The path of a whole URL, which must be one of the service's: a credential goes nowhere else. */
function withoutAddress(url: string, address: string | undefined): string {
  const base = address?.replace(/\/+$/, '')
  const isOwn =
    base !== undefined && (url === base || url.startsWith(`${base}/`) || url.startsWith(`${base}?`))
  if (!isOwn)
    throw usage(`${shorten(url)}: give the path only, or a URL that begins with the service's address`)
  return url.slice(base.length)
}

/**
 * In any encoding: a server that decodes a path once too often would walk out of it. So would one that drops `;` and
 * the rest of a segment.
 */
function hasDotSegment(path: string): boolean {
  let decoded = path
  for (let round = 0; round <= mostDecodings; round++) {
    if (decoded.split(/[/\\]/).some((segment) => /^\.\.?(;|$)/.test(segment))) return true
    const next = decoded.replace(/%(2e|2f|3b|5c|25)/gi, (code) => decodeURIComponent(code))
    if (next === decoded) return false
    decoded = next
  }
  return true
}

/** Whether a path is sent as it is spelled: a URL would encode or drop some characters. */
function isUnchanged(path: string): boolean {
  if (!/^[\x21-\x7e]+$/.test(path)) return false
  const { pathname, search } = new URL(`http://host${path}`)
  return pathname + search === path.replace(/\?$/, '')
}
