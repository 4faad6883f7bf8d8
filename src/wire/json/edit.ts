import { usage } from '../../errors.ts'
import type { Assignment } from './assignment.ts'
import { formatPath } from './parse.ts'
import { endOfValue, findChild, skipBlanks } from './scanner.ts'

/**
 * Changes values in a JSON text; all the rest stays as it is written. Where a key is there twice, the last one is
 * changed, as `JSON.parse` reads that one. Throws a usage error where a path goes through a value of another kind.
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
