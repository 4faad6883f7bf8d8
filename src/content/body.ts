import { createUsageErrorFromProblems, usageError } from '../errors.ts'
import { GenerateRequest } from '../wire/gateway/generate-request.ts'
import {
  createJsonAssignment,
  createListAppendAssignment,
  editJson,
  type JsonAssignment,
} from '../wire/json/edit.ts'
import { describeSchemaIssues, isObject, parseInputJson } from '../wire/json/parse.ts'
import { createTextWithinLimit } from '../wire/json/text-limit.ts'

export type MessagePart = { text: string } | { inlineData: { mimeType: string; data: string } }

/**
 * A request body from the user. Messages call the body `name`. If the text is not JSON, `hint` ends the
 * message.
 */
export interface UserRequestBody {
  text: string
  name: string
  hint?: string
}

export interface RequestBodyParts {
  given?: UserRequestBody
  /** Parts that are appended to the conversation as the user's message. */
  turn: MessagePart[]
  system?: string | undefined
  hasSchema?: boolean
  assignments: JsonAssignment[]
}

/**
 * Builds the body of a generation request. A given body keeps its source text, except for the values that
 * flags set. Throws a usage error if a given body is not a generation request.
 */
export function buildRequestBody(parts: RequestBodyParts): string {
  const { given, turn, system } = parts
  const instruction = JSON.stringify({ parts: [{ text: system }] })
  const assignments = [
    ...(system === undefined ? [] : [createJsonAssignment(['systemInstruction'], instruction)]),
    ...parts.assignments,
  ]
  const body = given && check(given)
  // A body with `messages` is for another endpoint of the gateway, so parley cannot add a prompt or schema.
  const isMessageBody = isObject(body) && Object.hasOwn(body, 'messages') && !Object.hasOwn(body, 'contents')
  if (given && isMessageBody && (turn.length > 0 || system !== undefined || parts.hasSchema)) {
    const hint =
      "'parley api gateway /v1/message' sends such a body; chat and image cannot add a prompt or a schema to it"
    throw usageError(`${given.name}: the body has 'messages' but no 'contents': ${hint}`)
  }
  const text = createTextWithinLimit(() => {
    const added = { role: 'user', parts: turn }
    // Serializes a new body and its prompt at once. Appending a long prompt to an empty body would copy the
    // prompt once more.
    if (!given) return editJson(JSON.stringify({ contents: [added] }), assignments)
    const more = turn.length > 0 ? [createListAppendAssignment(['contents'], JSON.stringify(added))] : []
    return editJson(given.text, [...more, ...assignments])
  })
  if (text !== given?.text && (given || parts.assignments.length > 0)) check({ text, name: 'the body' })
  return text
}

function check({ text, name, hint }: UserRequestBody): unknown {
  const body = parseInputJson(text, name, hint)
  const parsed = GenerateRequest().safeParse(body)
  if (!parsed.success) throw createUsageErrorFromProblems(name, describeSchemaIssues(parsed.error))
  return body
}
