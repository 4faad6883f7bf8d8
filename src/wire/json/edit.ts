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
export function editJson(text: string, assignments: readonly JsonAssignment[]): string {
  if (assignments.length === 0) return text
  const root = openContainer(text)
  for (const assignment of assignments) assign(root, assignment)
  return root?.text() ?? text
}

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

interface Child {
  /** Comma, key and blanks before the value. */
  lead: string
  value: string | Container
}

/** An object or a list. Values that do not change keep their source text. */
class Container {
  readonly isList: boolean
  readonly #head: string
  readonly #tail: string
  readonly #children: Child[] = []
  readonly #byKey = new Map<Step, Child>()

  constructor(text: string) {
    const start = skipBlanks(text, 0)
    let end = start + 1
    this.isList = text[start] === '['
    for (const child of listJsonChildren(text, start)) {
      this.#push(child.name, text.slice(end, child.start), text.slice(child.start, child.end))
      end = child.end
    }
    this.#head = text.slice(0, start + 1)
    this.#tail = text.slice(end)
  }

  has(key: string | number): boolean {
    return this.#byKey.has(key)
  }

  open(key: string | number): Container | undefined {
    const child = this.#byKey.get(key)
    if (typeof child?.value === 'string') child.value = openContainer(child.value) ?? child.value
    return typeof child?.value === 'string' ? undefined : child?.value
  }

  set(key: Step, json: string): void {
    const child = this.#byKey.get(key)
    if (child) child.value = json
    else {
      const comma = this.#children.length === 0 ? '' : ','
      const name = typeof key === 'string' ? `${JSON.stringify(key)}:` : ''
      this.#push(key, comma + name, json)
    }
  }

  text(): string {
    const values = this.#children.map(
      ({ lead, value }) => lead + (typeof value === 'string' ? value : value.text()),
    )
    return [this.#head, ...values, this.#tail].join('')
  }

  #push(key: Step, lead: string, value: string): void {
    const child = { lead, value }
    this.#byKey.set(key ?? this.#children.length, child)
    this.#children.push(child)
  }
}

const openContainer = (text: string): Container | undefined =>
  /^\s*[[{]/.test(text) ? new Container(text) : undefined

function assign(root: Container | undefined, { path, json, source }: JsonAssignment): void {
  let inner = root
  for (const [depth, key] of path.entries()) {
    const above = path.slice(0, depth) as Path
    const container = requireKind(inner, typeof key !== 'string', above, source)
    if (typeof key === 'number' && key > 0 && !container.has(key - 1))
      throw usageError(
        `${source}: ${formatFieldPath([...above, key])} would leave a gap in the list; use ${formatFieldPath(above)}[] to append`,
      )
    if (depth === path.length - 1 || key === undefined) container.set(key, json)
    else {
      if (!container.has(key)) container.set(key, typeof path[depth + 1] === 'string' ? '{}' : '[]')
      inner = container.open(key)
    }
  }
}

function requireKind(
  container: Container | undefined,
  isList: boolean,
  path: Path,
  source: string,
): Container {
  if (container?.isList === isList) return container
  throw usageError(
    `${source}: ${formatFieldPath(path) || 'the body'} is not ${isList ? 'a list' : 'an object'}`,
  )
}
