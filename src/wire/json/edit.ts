import { usage } from '../../errors.ts'
import { formatPath, tryParseJson } from './parse.ts'
import { endOfValue, findChild, skipBlanks } from './scanner.ts'

export interface Assignment {
  path: (string | number)[]
  /** `a[]=…` adds an element. */
  appends: boolean
  /** JSON text, exactly as the person wrote it. */
  json: string
  /** As it was written, for messages. */
  source: string
}

/** Sets a field to a JSON text. */
export const assigning = (path: Assignment['path'], json: string): Assignment => ({
  path,
  appends: false,
  json,
  source: path.join('.'),
})

/** Adds a JSON text to a list. */
export const appending = (path: Assignment['path'], json: string): Assignment => ({
  ...assigning(path, json),
  appends: true,
})

const longestPath = 1000

/** Reads the path that a text begins with: `a.b`, `a[0]`, `a["x.y"]`. Returns where it ends, too. */
export function readFieldPath(source: string): { path: (string | number)[]; end: number } {
  const path: (string | number)[] = []
  const key = /\.?([^.[\]="]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/y
  let end = 0
  for (let found = key.exec(source); found; found = key.exec(source)) {
    const [whole, name, index, quoted] = found
    if (name !== undefined && whole.startsWith('.') === (path.length === 0)) break
    if (quoted !== undefined && !isJson(quoted)) break
    path.push(name ?? (index === undefined ? (JSON.parse(quoted as string) as string) : Number(index)))
    end = key.lastIndex
  }
  return { path, end }
}

/** Reads the `PATH=VALUE` of `--set`: a path, or `a[]` to append. Throws a usage error. */
export function parseAssignment(source: string): Assignment {
  const { path, end: endOfPath } = readFieldPath(source)
  let end = endOfPath
  const appends = source.startsWith('[]', end)
  if (appends) end += 2
  if (path.length === 0 || source[end] !== '=') {
    throw usage(
      `--set ${source}: must have the form PATH=VALUE, with a path such as a.b, a[0], a[] or a["x.y"]`,
    )
  }
  if (path.length > longestPath) throw usage(`--set: its path has more than ${longestPath} steps`)
  const value = source.slice(end + 1)
  return { path, appends, json: isJson(value) ? value : JSON.stringify(value), source: `--set ${source}` }
}

const isJson = (text: string): boolean => tryParseJson(text) !== undefined

/**
 * Changes values in a JSON text; all the rest stays as it is written. If a key is there twice, the last one is
 * changed, as `JSON.parse` reads that one. Throws a usage error if a path goes through a value of another kind.
 */
export function editJson(text: string, assignments: readonly Assignment[]): string {
  return joinAppends(assignments).reduce(edit, text)
}

/** Makes several additions to one list into one, because each costs a pass over the text. */
function joinAppends(assignments: readonly Assignment[]): Assignment[] {
  const joined: (Assignment & { all: string[] })[] = []
  for (const assignment of assignments) {
    const last = joined.at(-1)
    const isSame = last?.appends && assignment.appends && isEqual(last.path, assignment.path)
    if (last && isSame) last.all.push(assignment.json)
    else joined.push({ ...assignment, all: [assignment.json] })
  }
  return joined.map(({ all, ...assignment }) => ({ ...assignment, json: all.join(',') }))
}

const isEqual = (one: Assignment['path'], other: Assignment['path']) =>
  one.length === other.length && one.every((key, index) => key === other[index])

function edit(text: string, { path, appends, json, source }: Assignment): string {
  let start = skipBlanks(text, 0)
  for (const [depth, key] of path.entries()) {
    requireKind(text, start, { isList: typeof key === 'number', path: path.slice(0, depth), source })
    const found = findChild(text, start, key)
    if (!found) {
      if (typeof key === 'number' && key > 0 && !findChild(text, start, key - 1)) {
        throw usage(`${source}: ${formatPath(path.slice(0, depth + 1))} would leave a gap`)
      }
      const name = typeof key === 'number' ? '' : `${JSON.stringify(key)}:`
      return addChild(text, start, name + wrap(path.slice(depth + 1), { appends, json, source }))
    }
    start = found.start
  }
  if (!appends) return text.slice(0, start) + json + text.slice(endOfValue(text, start))
  requireKind(text, start, { isList: true, path, source })
  return addChild(text, start, json)
}

/** Adds an element or a field after the last one of the list or object that begins at `start`. */
function addChild(text: string, start: number, child: string): string {
  let end = endOfValue(text, start) - 1
  while (/\s/.test(text.charAt(end - 1))) end--
  const comma = end === start + 1 ? '' : ','
  return text.slice(0, end) + comma + child + text.slice(end)
}

/** The value of the first parent that is missing. */
function wrap(
  path: Assignment['path'],
  { appends, json, source }: Pick<Assignment, 'appends' | 'json' | 'source'>,
): string {
  const opening: string[] = []
  const closing: string[] = []
  for (const key of path) {
    if (typeof key === 'number' && key > 0) throw usage(`${source}: [${key}] would leave a gap`)
    opening.push(typeof key === 'number' ? '[' : `{${JSON.stringify(key)}:`)
    closing.unshift(typeof key === 'number' ? ']' : '}')
  }
  return [...opening, appends ? `[${json}]` : json, ...closing].join('')
}

function requireKind(
  text: string,
  start: number,
  { isList, path, source }: { isList: boolean; path: Assignment['path']; source: string },
): void {
  if (text[start] === (isList ? '[' : '{')) return
  throw usage(`${source}: ${formatPath(path) || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
}
