import { usage } from '../../errors.ts'
import { tryParseJson } from './parse.ts'

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
export const assigning = (path: string[], json: string): Assignment => ({
  path,
  appends: false,
  json,
  source: path.join('.'),
})

/** Adds a JSON text to a list. */
export const appending = (path: string[], json: string): Assignment => ({
  ...assigning(path, json),
  appends: true,
})

const longestPath = 1000

/** Reads the path that a text begins with: `a.b`, `a[0]`, `a["x.y"]`. Returns where it ends, too. */
export function readPath(source: string): { path: (string | number)[]; end: number } {
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
  const { path, end: endOfPath } = readPath(source)
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
