import { usage } from '../../errors.ts'
import { formatPath, tryParseJson } from './parse.ts'
import { childrenOf, skipBlanks } from './scanner.ts'

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
  if (assignments.length === 0) return text
  const root = openContainer(text)
  for (const assignment of assignments) assign(root, assignment)
  return root?.text() ?? text
}

/** An object or a list whose values can be changed. What is not opened stays one text. */
class Container {
  readonly isList: boolean
  readonly #head: string
  readonly #tail: string
  /** Each value, and what stands before it: a comma, a key, blanks. */
  readonly #children: { lead: string; value: string | Container }[] = []
  readonly #places = new Map<string | number, number>()

  /** The text has no other value, but may have blanks around this one. */
  constructor(text: string) {
    const start = skipBlanks(text, 0)
    let end = start + 1
    this.isList = text[start] === '['
    for (const child of childrenOf(text, start)) {
      this.#push(child.name, text.slice(end, child.start), text.slice(child.start, child.end))
      end = child.end
    }
    this.#head = text.slice(0, start + 1)
    this.#tail = text.slice(end)
  }

  has(key: string | number): boolean {
    return this.#places.has(key)
  }

  /** The object or list in a place; `undefined` if there is a value of another kind. */
  open(key: string | number): Container | undefined {
    const child = this.#children[this.#places.get(key) ?? -1]
    if (typeof child?.value === 'string') child.value = openContainer(child.value) ?? child.value
    return typeof child?.value === 'string' ? undefined : child?.value
  }

  /** Sets a value, or adds it after the last one. */
  set(key: string | number | undefined, json: string): void {
    const child = key === undefined ? undefined : this.#children[this.#places.get(key) ?? -1]
    if (child) child.value = json
    else {
      const comma = this.#children.length === 0 ? '' : ','
      const name = typeof key === 'string' ? `${JSON.stringify(key)}:` : ''
      this.#push(typeof key === 'string' ? key : undefined, comma + name, json)
    }
  }

  text(): string {
    const values = this.#children.map(
      ({ lead, value }) => lead + (typeof value === 'string' ? value : value.text()),
    )
    return [this.#head, ...values, this.#tail].join('')
  }

  #push(name: string | undefined, lead: string, value: string): void {
    this.#places.set(name ?? this.#children.length, this.#children.length)
    this.#children.push({ lead, value })
  }
}

const openContainer = (text: string): Container | undefined =>
  /[[{]/.test(text.charAt(skipBlanks(text, 0))) ? new Container(text) : undefined

/** Sets or adds the value, and makes each parent that is missing. */
function assign(root: Container | undefined, { path, appends, json, source }: Assignment): void {
  // The place after the last element of a list has no number.
  const steps = appends ? [...path, undefined] : path
  let inner = root
  for (const [depth, key] of steps.entries()) {
    const above = path.slice(0, depth)
    const container = requireKind(inner, typeof key !== 'string', above, source)
    if (typeof key === 'number' && key > 0 && !container.has(key - 1))
      throw usage(`${source}: ${formatPath([...above, key])} would leave a gap`)
    if (depth === steps.length - 1 || key === undefined) container.set(key, json)
    else {
      if (!container.has(key)) container.set(key, typeof steps[depth + 1] === 'string' ? '{}' : '[]')
      inner = container.open(key)
    }
  }
}

function requireKind(
  container: Container | undefined,
  isList: boolean,
  path: Assignment['path'],
  source: string,
): Container {
  if (container?.isList === isList) return container
  throw usage(`${source}: ${formatPath(path) || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
}
