import { usageError } from '../../errors.ts'
import { formatFieldPath, tryParseJson } from './parse.ts'
import { listJsonChildren, skipBlanks } from './scanner.ts'

type Path = (string | number)[]
type Step = string | number | undefined

export interface JsonAssignment {
  /** Keys and indexes. The last step is `undefined` for `a[]=…`, which appends an element. */
  path: Step[]
  json: string
  source: string
}

export const createJsonAssignment = (path: Path, json: string): JsonAssignment => ({
  path,
  json,
  source: path.join('.'),
})

export const createListAppendAssignment = (path: Path, json: string): JsonAssignment => ({
  ...createJsonAssignment(path, json),
  path: [...path, undefined],
})

const maxPathLength = 1000

export function readFieldPath(source: string): { path: Path; end: number } {
  const path: Path = []
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

export function parseSetFlag(source: string): JsonAssignment {
  const { path, end } = readFieldPath(source)
  const [, brackets, value] = /^(\[\])?=(.*)$/s.exec(source.slice(end)) ?? []
  if (path.length === 0 || value === undefined) {
    throw usageError(
      `--set ${source}: must have the form PATH=VALUE, with a path such as a.b, a[0], a[] or a["x.y"]`,
    )
  }
  if (path.length > maxPathLength) throw usageError(`--set: the path has more than ${maxPathLength} steps`)
  const create = brackets ? createListAppendAssignment : createJsonAssignment
  return { ...create(path, isJson(value) ? value : JSON.stringify(value)), source: `--set ${source}` }
}

const isJson = (text: string): boolean => tryParseJson(text) !== undefined

/**
 * Applies assignments to JSON text and keeps all other bytes. If a key occurs twice, changes the last
 * occurrence, because `JSON.parse` uses the last one. Throws a usage error if a path leads through a text,
 * number, boolean or null.
 */
export const editJson = (text: string, assignments: readonly JsonAssignment[]): string =>
  assignments.reduce(assign, text)

function assign(text: string, { path, json, source }: JsonAssignment): string {
  let edited = text
  let value = { start: skipBlanks(text, 0), end: text.length }
  for (const [depth, key] of path.entries()) {
    const isList = typeof key !== 'string'
    const place = formatFieldPath(path.slice(0, depth) as Path)
    if (edited[value.start] !== (isList ? '[' : '{'))
      throw usageError(`${source}: ${place || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
    const children = [...listJsonChildren(edited, value.start)]
    const { length } = children
    if (typeof key === 'number' && key > length)
      throw usageError(`${source}: ${place}[${key}] would leave a gap in the list; use ${place}[] to append`)
    const index = isList ? (key ?? length) : children.findLastIndex(({ name }) => name === key)
    const end = children.at(-1)?.end ?? value.start + 1
    const lead = (length > 0 ? ',' : '') + (isList ? '' : `${JSON.stringify(key)}:`)
    const start = end + lead.length
    value = children[index] ?? { start, end: start + 2 }
    if (children[index]) continue
    // The last step replaces this empty value.
    const empty = typeof path[depth + 1] === 'string' ? '{}' : '[]'
    edited = edited.slice(0, end) + lead + empty + edited.slice(end)
  }
  return edited.slice(0, value.start) + json + edited.slice(value.end)
}

/** Removes all fields of this name and keeps all other bytes, because the hash of a batch line depends on them. */
export function removeJsonField(objectJson: string, name: string): string {
  const head = objectJson.slice(0, objectJson.indexOf('{') + 1)
  const kept: string[] = []
  let start = head.length
  let end = start
  for (const child of listJsonChildren(objectJson, start - 1)) {
    end = skipBlanks(objectJson, child.end)
    if (child.name !== name) kept.push(objectJson.slice(start, end))
    start = end + 1
  }
  return head + kept.join(',') + objectJson.slice(end)
}
