import { usageError, usageErrorOfProblems } from '../errors.ts'
import { spellBody } from '../wire/json/body-text.ts'
import { type Assignment, appending, assigning, editJson } from '../wire/json/edit.ts'
import { describeIssues, isObject, parseGivenJson } from '../wire/json/parse.ts'

export type Part = { text: string } | { inlineData: { mimeType: string; data: string } }

/** The text of a body that the person gave, its name in messages, and a hint for a text that is not JSON. */
export interface GivenBody {
  text: string
  name: string
  hint?: string
}

export interface BodyParts {
  given?: GivenBody
  /** One more user turn. */
  turn: Part[]
  /** Instructions to the model: `systemInstruction` of the native format. */
  system?: string | undefined
  /** Numbers as JSON spells them. */
  maxOutputTokens?: string
  temperature?: string
  /** The answer is asked for in a form that a schema says. */
  hasSchema?: boolean
  /** It is asked for as a stream by the body, which not all services read. */
  isStream?: boolean
  assignments: Assignment[]
}

/**
 * Builds a generation request's body. A given body keeps its exact text; only what flags set is changed in it. Throws a
 * usage error for a body that is not a generation request.
 */
export async function buildBody(parts: BodyParts): Promise<Uint8Array> {
  const { given, turn, assignments, system, temperature, maxOutputTokens, isStream } = parts
  const fields: [path: string[], json: string | undefined][] = [
    [['systemInstruction'], system === undefined ? undefined : JSON.stringify(instruct(system))],
    [['stream'], isStream ? 'true' : undefined],
    [['generationConfig', 'temperature'], temperature],
    [['generationConfig', 'maxOutputTokens'], maxOutputTokens],
  ]
  const set = fields.flatMap(([path, json]) => (json === undefined ? [] : [assigning(path, json)]))
  const body = given && (await check(given))
  // It belongs to another endpoint of the gateway.
  const isOther = isObject(body) && Object.hasOwn(body, 'messages') && !Object.hasOwn(body, 'contents')
  if (given && isOther && (turn.length > 0 || system !== undefined || parts.hasSchema)) {
    const way = "'parley api gateway /v1/message' takes it; here it goes only as it is"
    throw usageError(`${given.name}: it has messages and no contents: ${way}`)
  }
  const text = spellBody(() => {
    const added = { role: 'user', parts: turn }
    // A long prompt is spelled once: to add it to a body makes another copy.
    if (!given) return editJson(JSON.stringify({ contents: [added] }), [...set, ...assignments])
    const more = turn.length > 0 ? [appending(['contents'], JSON.stringify(added))] : []
    return editJson(given.text, [...more, ...set, ...assignments])
  })
  if (text !== given?.text && (given || assignments.length > 0)) await check({ text, name: 'the body' })
  return Buffer.from(text)
}

/** An instruction to the model, as a body has it. */
export const instruct = (text: string) => ({ parts: [{ text }] })

async function check({ text, name, hint }: GivenBody): Promise<unknown> {
  const body = parseGivenJson(text, name, hint)
  const { GenerateRequest } = await import('../wire/gateway/generate-request.ts')
  const parsed = GenerateRequest.safeParse(body)
  if (!parsed.success) throw usageErrorOfProblems(name, describeIssues(parsed.error))
  return body
}
