import { usage, usageProblems } from '../errors.ts'
import { describeIssues, describeJsonError } from '../wire/json.ts'
import { editJson } from './json-edit.ts'
import { type Assignment, appending, assigning } from './set.ts'

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
    return finish(await editJson(JSON.stringify(body), parts.assignments), parts.assignments.length > 0)
  }
  await check(parts.given.text, parts.given.name)
  const own: Assignment[] = Object.entries(config).map(([name, value]) =>
    assigning(['generationConfig', name], JSON.stringify(value)),
  )
  if (parts.turn.length > 0) own.unshift(appending(['contents'], JSON.stringify(turn)))
  const all = [...own, ...parts.assignments]
  return finish(await editJson(parts.given.text, all), all.length > 0)
}

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
  const { GenerateRequest } = await import('../wire/generate-request.ts')
  const parsed = GenerateRequest.safeParse(body)
  if (!parsed.success) throw usageProblems(name, describeIssues(parsed.error))
}
