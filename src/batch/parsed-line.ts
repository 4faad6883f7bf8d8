import { usageError } from '../errors.ts'
import { removeJsonField } from '../wire/json/edit.ts'
import { isObject, parseJson } from '../wire/json/parse.ts'
import { findJsonField } from '../wire/json/scanner.ts'

export type ParsedBatchLine = { id?: BatchLineId; model?: string } & ({ prompt: string } | { body: string })

export type BatchLineId = string | number

const parleyFields = ['id', 'prompt', 'model']

/** Names of the id field in batch files of other services. */
const idNames = ['custom_id', 'key']
const bodyNames = ['body', 'params', 'request']
const ignoredNames = ['method', 'url']

const expected =
  'it must be a prompt in quotes, an object with "prompt", a body with "contents", or an object with "custom_id" and "body"'

/**
 * Parses the JSON of a line. Throws a `SyntaxError` for invalid JSON, and a usage error for JSON of another
 * form.
 */
export function parseBatchLine(line: string): ParsedBatchLine {
  const value = parseJson(line)
  if (typeof value === 'string') return { prompt: readPrompt(value) }
  if (!isObject(value)) throw usageError(expected)
  if (Object.hasOwn(value, 'contents')) return readBody(line, value)
  if (Object.hasOwn(value, 'prompt')) return readParleyForm(value)
  const bodyName = findField(value, bodyNames)
  if (bodyName === undefined) throw usageError(expected)
  return readBatchApiForm(line, value, bodyName)
}

function readParleyForm(value: Record<string, unknown>): ParsedBatchLine {
  refuseUnknownFields(value, parleyFields)
  return { id: readId(value, 'id'), model: readModel(value), prompt: readPrompt(value.prompt) }
}

function readBatchApiForm(line: string, value: Record<string, unknown>, bodyName: string): ParsedBatchLine {
  const idName = findField(value, idNames)
  if (idName === undefined) throw usageError(`it has a "${bodyName}", but no "custom_id" and no "key"`)
  refuseUnknownFields(value, [idName, bodyName, ...ignoredNames])
  const body = value[bodyName]
  if (!isObject(body)) throw usageError(`its "${bodyName}" must be an object`)
  return { id: readId(value, idName), ...readBody(findJsonField(line, bodyName) as string, body) }
}

/** Removes the field `model`, because the address of the request names the model. */
function readBody(body: string, value: Record<string, unknown>): { model?: string; body: string } {
  const model = readModel(value)
  return { model, body: model === undefined ? body : removeJsonField(body, 'model') }
}

function readPrompt(prompt: unknown): string {
  if (typeof prompt !== 'string') throw usageError('its "prompt" must be a string')
  if (prompt.trim() === '') throw usageError('its prompt is empty')
  return prompt
}

function readModel(value: Record<string, unknown>): string | undefined {
  if (!Object.hasOwn(value, 'model')) return undefined
  const { model } = value
  if (typeof model !== 'string' || model === '') throw usageError('its "model" must be the name of a model')
  return model
}

function readId(value: Record<string, unknown>, name: string): BatchLineId | undefined {
  if (!Object.hasOwn(value, name)) return undefined
  const id = value[name]
  if (typeof id === 'string' || Number.isSafeInteger(id)) return id as BatchLineId
  throw usageError(`its "${name}" must be a string or a whole number`)
}

const findField = (value: Record<string, unknown>, names: string[]): string | undefined =>
  names.find((name) => Object.hasOwn(value, name))

function refuseUnknownFields(value: Record<string, unknown>, known: string[]): void {
  const other = Object.keys(value).find((name) => !known.includes(name))
  if (other === undefined) return
  throw usageError(`it has the unknown field ${JSON.stringify(other.slice(0, 50))}`)
}
