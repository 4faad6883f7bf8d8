import type { Node } from 'jsonc-parser'
import { usage } from '../errors.ts'
import { formatPath } from '../wire/json.ts'
import type { Assignment } from './set.ts'

/**
 * Changes a JSON text in place, so that all else in it keeps its spelling. Throws a usage error where a path
 * leads through a value of another kind, or through a key that stands twice: readers would see the other one.
 */
export async function editJson(text: string, assignments: Assignment[]): Promise<string> {
  if (assignments.length === 0) return text
  const { applyEdits, modify, parseTree } = await import('jsonc-parser')
  let changed = text
  for (const { path, appends, json, source } of assignments) {
    requireWay(parseTree(changed), path, appends, source)
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

function requireWay(
  root: Node | undefined,
  path: (string | number)[],
  appends: boolean,
  source: string,
): void {
  let value = root
  for (const [depth, key] of path.entries()) {
    requireKind(value, typeof key === 'number', formatPath(path.slice(0, depth)), source)
    const place = formatPath(path.slice(0, depth + 1))
    const isGap = typeof key === 'number' && key > (value?.children?.length ?? 0)
    if (isGap) throw usage(`${source}: ${place} would leave a gap`)
    const [found, another] = findChildren(value, key)
    if (another) throw usage(`${source}: ${place} stands twice in the body`)
    value = found
  }
  if (appends) requireKind(value, true, formatPath(path), source)
}

/** The values of a key, which may stand more than once, or the element of an index. */
function findChildren(value: Node | undefined, key: string | number): (Node | undefined)[] {
  const children = value?.children ?? []
  if (typeof key === 'number') return [children[key]]
  return children
    .filter(({ children: [name] = [] }) => name?.value === key)
    .map((field) => field.children?.[1])
}

function requireKind(value: Node | undefined, isList: boolean, place: string, source: string): void {
  if (value === undefined || value.type === (isList ? 'array' : 'object')) return
  throw usage(`${source}: ${place || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
}
