import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { draft07, draft2020 } from './drafts.ts'
import { reading } from './reading.ts'

/** What is wrong with a schema, or how a value does not fit; empty if nothing is. */
type Problems = string[]

export interface Judge {
  problems: Problems
  judge(value: unknown): Problems
}

/** More mismatches help neither a person nor a model. */
const mostProblems = 20

const drafts = [
  {
    address: /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/,
    Validator: Ajv2020,
    check: draft2020,
  },
  { address: /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/, Validator: Ajv, check: draft07 },
]

/**
 * Makes what checks values by a schema of draft 2020-12, or of draft-07 if it says so. `problems` tells why it is not a
 * schema. As the drafts have it, unknown keywords and formats are ignored, and `format` only describes.
 */
export function createJudge(schema: unknown): Judge {
  const failing = (problems: Problems): Judge => ({ problems, judge: () => problems })
  const dialect = isObject(schema) ? (schema.$schema ?? drafts[0]) : drafts[0]
  const draft = drafts.find((each) => each === dialect || each.address.test(String(dialect)))
  if (!draft) return failing([`$.$schema: ${dialect} is neither JSON Schema draft 2020-12 nor draft-07`])
  const validator = new draft.Validator({ ...reading, validateSchema: false })
  try {
    // Of its problems the first names the keyword; others may only follow from it.
    if (!draft.check(schema)) return failing(describeAll(draft.check.errors?.slice(0, 1)))
    for (const part of [...subschemasOf(schema)]) {
      for (const [name, type] of validatorsOwn) if (typeof part[name] === type) delete part[name]
      nameAnew(part)
    }
    const validate: ValidateFunction = validator.compile(schema as object)
    // Shows a schema that is its own part without end.
    validate(null)
    return {
      problems: [],
      judge: (value) => (validate(value) ? [] : describeAll(validate.errors)),
    }
  } catch (error) {
    return failing([describeRefusal(error)])
  }
}

/** Keywords that mean something to the validator if they have a value of this type, and nothing to the drafts. */
const validatorsOwn = [
  ['$async', 'boolean'],
  ['nullable', 'boolean'],
  ['id', 'string'],
] as const

/** The validator leaves out what a map of properties has by this name, but not by a pattern for it. */
const leftOut = '__proto__'

function nameAnew(part: SchemaObject): void {
  for (const [map, pattern] of [
    [part.properties, `^(${leftOut})$`],
    [part.patternProperties, `(${leftOut})`],
  ] as const)
    if (isObject(map) && Object.hasOwn(map, leftOut))
      part.patternProperties = { ...(part.patternProperties as SchemaObject), [pattern]: map[leftOut] }
}

function describeRefusal(error: unknown): string {
  if (error instanceof RangeError) return 'it refers to itself without end'
  const { message } = error as Error
  const reference = /^can't resolve reference (.+) from id /.exec(message)?.[1]
  if (reference === undefined) return message
  return `$ref: ${reference} ${reference.startsWith('#') ? 'leads to no schema' : 'is outside of the file'}`
}

/** Says only that there are others, which stand before it. */
const summaries = new Set(['if', 'propertyNames'])

/** Where and why a value does not fit: `$.items[0].price: type: must be number, not "a"`. */
function describeAll(errors: readonly ErrorObject[] | null | undefined): Problems {
  const all = errors ?? []
  const own = all.filter(({ keyword }) => !summaries.has(keyword))
  const problems = new Set<string>()
  for (const error of own.length > 0 ? own : all) {
    if (problems.size === mostProblems) break
    problems.add(describe(error))
  }
  return [...problems]
}

function describe({ instancePath, keyword, message, params, data }: ErrorObject): string {
  const place = formatPlace(instancePath)
  const named = params.additionalProperty ?? params.unevaluatedProperty
  if (named !== undefined) return `${place}: ${keyword}: must not have the property ${JSON.stringify(named)}`
  const allowed = params.allowedValues ?? (keyword === 'const' ? [params.allowedValue] : undefined)
  if (allowed)
    return `${place}: ${keyword}: must be ${shorten(allowed.map(toJson).join(' or '))}, not ${kindOf(data)}`
  if (keyword === 'type') return `${place}: type: ${message}, not ${kindOf(data)}`
  return `${place}: ${keyword.replace(' schema', '')}: ${message}`
}

const toJson = (value: unknown) => JSON.stringify(value)

const shorten = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

/** A short value as it is, a long one by its kind. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (isObject(value)) return 'an object'
  const text = toJson(value) ?? 'nothing'
  return text.length > 40 ? 'a longer text' : text
}

/** The place that a pointer such as `/items/0` leads to, in the way of JSON path. */
function formatPlace(pointer: string): string {
  const keys = pointer.split('/').slice(1)
  return `$${keys.map((key) => formatKey(key.replaceAll('~1', '/').replaceAll('~0', '~'))).join('')}`
}

function formatKey(key: string): string {
  if (/^[A-Za-z_][\w-]*$/.test(key)) return `.${key}`
  return `[${/^\d+$/.test(key) ? key : JSON.stringify(key)}]`
}

type SchemaObject = Record<string, unknown>

const isObject = (value: unknown): value is SchemaObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords whose value is schemas by name. Of all others every object, alone or in a list, is a schema. */
const maps = new Set([
  '$defs',
  'definitions',
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
])
const data = new Set(['const', 'enum', 'default', 'examples'])

/** A schema and all in it. Objects under unknown keywords count too. */
function* subschemasOf(schema: unknown): Generator<SchemaObject> {
  if (Array.isArray(schema)) for (const each of schema) yield* subschemasOf(each)
  if (!isObject(schema)) return
  yield schema
  for (const [key, value] of Object.entries(schema)) {
    const parts = maps.has(key) && isObject(value) ? Object.values(value) : value
    if (!data.has(key)) yield* subschemasOf(parts)
  }
}
