import { usage, usageProblems } from '../errors.ts'
import { type Assignment, appending, assigning, editJson } from '../wire/json/edit.ts'
import { encodeJson, type JsonPart, partsOf } from '../wire/json/encoder.ts'
import { describeIssues, describeJsonError, isObject, parseJson } from '../wire/json/parse.ts'

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
  const { given, assignments, system, temperature, maxOutputTokens, isStream } = parts
  const config = Object.entries({ temperature, maxOutputTokens }).filter(([, json]) => json !== undefined)
  const turn = { role: 'user', parts: parts.turn }
  const instruction = system === undefined ? {} : { systemInstruction: instruct(system) }
  const stream = isStream ? { stream: true } : {}
  if (!given) {
    const body = encode(newBody({ contents: [turn], ...instruction, ...stream }, config))
    return assignments.length === 0 ? body : change(Buffer.from(body).toString(), assignments)
  }
  const isOther = await isOfOtherEndpoint(given)
  if (isOther && (parts.turn.length > 0 || system !== undefined || parts.hasSchema)) {
    const way = "'parley api gateway /v1/message' takes it; here it goes only as it is"
    throw usage(`${given.name}: it has messages and no contents: ${way}`)
  }
  const own: Assignment[] = [
    ...Object.entries(instruction).map(([name, value]) => assigning([name], toText(value))),
    ...config.map(([name, json]) => assigning(['generationConfig', name], json ?? '')),
    ...(isStream ? [assigning(['stream'], 'true')] : []),
  ]
  if (parts.turn.length > 0) {
    own.unshift(appending(['contents'], toText(turn)))
  }
  const all = [...own, ...assignments]
  return all.length === 0 ? encode([{ json: given.text }]) : change(given.text, all)
}

/** An instruction to the model, as a body has it. */
export const instruct = (text: string) => ({ parts: [{ text }] })

/** A body's JSON. The numbers stay as they are spelled: a value in JavaScript would not keep that. */
function* newBody(fields: object, config: [name: string, json: string | undefined][]): Generator<JsonPart> {
  if (config.length === 0) return yield* partsOf(fields)
  yield { json: '{' }
  for (const [name, value] of Object.entries(fields)) {
    yield { json: `"${name}":` }
    yield* partsOf(value)
    yield { json: ',' }
  }
  const options = config.map(([name, json]) => `"${name}":${json}`)
  yield { json: `"generationConfig":{${options.join(',')}}}` }
}

function encode(parts: Iterable<JsonPart>): Uint8Array {
  const bytes = encodeJson(parts)
  if (!bytes) throw tooLong()
  return bytes
}

const toText = (value: object) => Buffer.from(encode(partsOf(value))).toString()

const tooLong = () => usage('the request is longer than 512 MiB, the most that can be sent')

async function change(text: string, assignments: readonly Assignment[]): Promise<Uint8Array> {
  let changed: string
  try {
    changed = editJson(text, assignments)
  } catch (error) {
    throw error instanceof RangeError ? tooLong() : error
  }
  await check({ text: changed, name: 'the body' })
  return encode([{ json: changed }])
}

async function check({ text, name, hint }: GivenBody): Promise<unknown> {
  let body: unknown
  try {
    body = parseJson(text)
  } catch {
    const problem = `${name}: not valid JSON: ${await describeJsonError(text)}`
    throw usage(hint === undefined ? problem : `${problem}; ${hint}`)
  }
  const { GenerateRequest } = await import('../wire/gateway/generate-request.ts')
  const parsed = GenerateRequest.safeParse(body)
  if (!parsed.success) throw usageProblems(name, describeIssues(parsed.error))
  return body
}

/** Checks a given body. One with `messages` and no `contents` belongs to another endpoint of the gateway. */
async function isOfOtherEndpoint(given: GivenBody): Promise<boolean> {
  const body = await check(given)
  return isObject(body) && Object.hasOwn(body, 'messages') && !Object.hasOwn(body, 'contents')
}
