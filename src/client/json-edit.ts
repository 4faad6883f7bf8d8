import { usage } from '../errors.ts'
import { formatPath } from '../wire/json.ts'
import type { Assignment } from './set.ts'

/**
 * Changes a JSON text in place, so that all else in it keeps its spelling. Throws a usage error where a path
 * leads through a value of another kind.
 */
export async function editJson(text: string, assignments: Assignment[]): Promise<string> {
  if (assignments.length === 0) return text
  const { applyEdits, modify } = await import('jsonc-parser')
  let changed = text
  for (const { path, appends, json, source } of assignments) {
    requireWay(JSON.parse(changed), path, appends, source)
    // The editor takes a value, which would respell numbers: a stand-in goes in, and the text takes its place.
    const edits = modify(changed, appends ? [...path, -1] : path, standIn, { isArrayInsertion: appends })
    changed = applyEdits(
      changed,
      edits.map((edit) => ({ ...edit, content: edit.content.replace(JSON.stringify(standIn), () => json) })),
    )
  }
  return changed
}

const standIn = '\u0000the value'

function requireWay(root: unknown, path: (string | number)[], appends: boolean, source: string): void {
  let value = root
  for (const [depth, key] of path.entries()) {
    requireKind(value, typeof key === 'number', formatPath(path.slice(0, depth)), source)
    const isGap = typeof key === 'number' && key > ((value as unknown[] | undefined)?.length ?? 0)
    if (isGap) throw usage(`${source}: ${formatPath(path.slice(0, depth + 1))} would leave a gap`)
    const isThere = value !== undefined && Object.hasOwn(value as object, key)
    value = isThere ? (value as Record<string | number, unknown>)[key] : undefined
  }
  if (appends) requireKind(value, true, formatPath(path), source)
}

function requireKind(value: unknown, isList: boolean, place: string, source: string): void {
  if (value === undefined) return
  const fits = isList
    ? Array.isArray(value)
    : typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!fits) throw usage(`${source}: ${place || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
}
