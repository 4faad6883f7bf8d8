import { usage } from '../errors.ts'
import { GenerateRequest } from '../wire/generate.ts'
import { describeIssues, describeJsonError, formatPath } from '../wire/json.ts'
import type { Assignment } from './set.ts'

export type Part = { text: string } | { inlineData: { mimeType: string; data: string } }

export interface BodyParts {
  /** A body that was given, as it was spelled, and what to call it in a message. */
  given?: { text: string; name: string }
  /** One more user turn. */
  turn: Part[]
  maxOutputTokens?: number
  temperature?: number
  assignments: Assignment[]
}

/**
 * Builds a generation request's body. What was given stays as it is spelled, to the letter; flags are merged over
 * it. Throws a usage error for a body that is no generation request.
 */
export async function buildBody(parts: BodyParts): Promise<Uint8Array> {
  const config = {
    ...(parts.temperature === undefined ? {} : { temperature: parts.temperature }),
    ...(parts.maxOutputTokens === undefined ? {} : { maxOutputTokens: parts.maxOutputTokens }),
  }
  const turn = { role: 'user', parts: parts.turn }
  if (!parts.given) {
    const hasConfig = Object.keys(config).length > 0
    const body = { contents: [turn], ...(hasConfig ? { generationConfig: config } : {}) }
    return finish(await assign(JSON.stringify(body), parts.assignments), parts.assignments.length > 0)
  }
  await check(parts.given.text, parts.given.name)
  const own: Assignment[] = Object.entries(config).map(([name, value]) =>
    assignment(['generationConfig', name], value),
  )
  if (parts.turn.length > 0) own.unshift({ ...assignment(['contents'], turn), appends: true })
  const all = [...own, ...parts.assignments]
  return finish(await assign(parts.given.text, all), all.length > 0)
}

const assignment = (path: string[], value: unknown): Assignment => ({
  path,
  appends: false,
  json: JSON.stringify(value),
  source: formatPath(path),
})

async function finish(text: string, isChanged: boolean): Promise<Uint8Array> {
  if (isChanged) await check(text, 'the body')
  return Buffer.from(text)
}

async function check(text: string, name: string): Promise<void> {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}`)
  }
  const parsed = GenerateRequest.safeParse(body)
  if (!parsed.success) throw usage(`${name}: ${describeIssues(parsed.error).join('; ')}`)
}

/** Changes a JSON text in place, so that all else in it keeps its spelling. */
async function assign(text: string, assignments: Assignment[]): Promise<string> {
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

/** Throws a usage error where a path leads through a value of another kind. */
function requireWay(root: unknown, path: (string | number)[], appends: boolean, source: string): void {
  let value = root
  for (const [depth, key] of path.entries()) {
    requireKind(value, typeof key === 'number', formatPath(path.slice(0, depth)), source)
    const isGap = typeof key === 'number' && key > ((value as unknown[] | undefined)?.length ?? 0)
    if (isGap) throw usage(`--set ${source}: ${formatPath(path.slice(0, depth + 1))} would leave a gap`)
    const own = value !== undefined && Object.hasOwn(value as object, key)
    value = own ? (value as Record<string | number, unknown>)[key] : undefined
  }
  if (appends) requireKind(value, true, formatPath(path), source)
}

function requireKind(value: unknown, isList: boolean, place: string, source: string): void {
  if (value === undefined) return
  const fits = isList
    ? Array.isArray(value)
    : typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!fits) throw usage(`--set ${source}: ${place || 'the body'} is not ${isList ? 'a list' : 'an object'}`)
}
