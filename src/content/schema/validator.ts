import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { validateDraft07Schema, validateDraft2020Schema } from './drafts.ts'
import { validatorOptions } from './validator-options.ts'

const maxProblems = 20

const drafts = [
  {
    address: /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/,
    Validator: Ajv2020,
    check: validateDraft2020Schema,
  },
  {
    address: /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/,
    Validator: Ajv,
    check: validateDraft07Schema,
  },
]

/**
 * Creates a validator for draft-07 if the schema names it, otherwise for draft 2020-12. The drafts require
 * that unknown keywords and formats are ignored, and that `format` is only an annotation. A schema that has
 * unknown keywords and constrains nothing is probably a mistake, so the validator reports it as a problem.
 */
export function createSchemaValidator(schema: unknown) {
  const failing = (problems: string[]) => ({ problems, validate: () => problems })
  const dialect = isObject(schema) ? (schema.$schema ?? drafts[0]) : drafts[0]
  const draft = drafts.find((each) => each === dialect || each.address.test(String(dialect)))
  if (!draft) return failing([`$.$schema: ${dialect} is neither JSON Schema draft 2020-12 nor draft-07`])
  const validator = new draft.Validator({ ...validatorOptions, validateSchema: false })
  try {
    // Only the first problem is listed, because other problems may follow from it.
    if (!draft.check(schema)) return failing(describeAll(draft.check.errors?.slice(0, 1)))
    for (const part of [...listSubschemas(schema)]) {
      for (const [name, type] of Object.entries(validatorOnlyKeywords))
        if (typeof part[name] === type) delete part[name]
      if (namesProto(part)) return failing(['a property must not be named __proto__'])
    }
    const ignored = findIgnoredKeywords(schema, validator)
    if (ignored.length > 0) return failing([describeUnconstrained(ignored)])
    const validate: ValidateFunction = validator.compile(schema as object)
    // A schema that refers to itself without end throws here, before any answer is requested.
    validate(null)
    const findProblems = (value: unknown) => (validate(value) ? [] : describeAll(validate.errors))
    return { problems: [], validate: findProblems }
  } catch (error) {
    return failing([describeRefusal(error)])
  }
}

/**
 * Keywords that only ajv defines, and the type of the values that ajv interprets. parley removes the
 * keywords, because the drafts ignore unknown keywords.
 */
const validatorOnlyKeywords = { $async: 'boolean', nullable: 'boolean', id: 'string' }

/** ajv ignores a property named `__proto__`, so an answer could have any value there. */
const namesProto = ({ properties, patternProperties }: SchemaObject): boolean =>
  [properties, patternProperties].some((map) => isObject(map) && Object.hasOwn(map, '__proto__'))

/**
 * Returns the unknown keywords of a schema that constrains nothing, such as a policy file. Returns an empty
 * list for `{}`, and for a schema with annotations only.
 */
function findIgnoredKeywords(schema: unknown, { RULES }: Ajv): string[] {
  const keywords = isObject(schema) ? Object.keys(schema) : []
  const isConstrained = keywords.some((keyword) => Object.hasOwn(RULES.all, keyword))
  return isConstrained ? [] : keywords.filter((keyword) => !Object.hasOwn(RULES.keywords, keyword))
}

const describeUnconstrained = (ignored: readonly string[]): string =>
  `$: no keyword of JSON Schema constrains the answer; unknown keywords: ${shorten(ignored.join(', '))}`

function describeRefusal(error: unknown): string {
  if (error instanceof RangeError) return 'it refers to itself without end'
  const { message } = error as Error
  const reference = /^can't resolve reference (.+) from id /.exec(message)?.[1]
  if (reference === undefined) return message
  return `$ref: ${reference} ${reference.startsWith('#') ? 'leads to no schema' : 'is outside of the file'}`
}

/** Maximum number of described mismatches, because an answer may have millions of them. Many may be equal. */
const maxDescribed = 1000

const describeAll = (errors: readonly ErrorObject[] | null | undefined): string[] =>
  [...new Set((errors ?? []).slice(0, maxDescribed).map(describe))].slice(0, maxProblems)

function describe({ instancePath, keyword, message, params, data }: ErrorObject): string {
  const place = formatJsonPath(instancePath)
  const named = params.additionalProperty ?? params.unevaluatedProperty
  if (named !== undefined) return `${place}: ${keyword}: must not have the property ${JSON.stringify(named)}`
  const allowed = params.allowedValues ?? (keyword === 'const' ? [params.allowedValue] : undefined)
  if (allowed)
    return `${place}: ${keyword}: must be ${shorten(allowed.map(toJson).join(' or '))}, not ${describeValue(data)}`
  if (keyword === 'type') return `${place}: type: ${message}, not ${describeValue(data)}`
  return `${place}: ${keyword.replace(' schema', '')}: ${message}`
}

const toJson = (value: unknown) => JSON.stringify(value)

const shorten = (text: string) => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (isObject(value)) return 'an object'
  const text = toJson(value) ?? 'nothing'
  return text.length > 40 ? 'a longer text' : text
}

function formatJsonPath(pointer: string): string {
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

/**
 * Keywords whose value maps names to schemas. The value of any other keyword may be a schema or a list of
 * schemas.
 */
const keywordsWithNamedSchemas = new Set(
  '$defs definitions properties patternProperties dependentSchemas dependencies'.split(' '),
)
const dataKeywords = new Set(['const', 'enum', 'default', 'examples'])

/** Yields the schema and all schemas inside of it. Treats an object under an unknown keyword as a schema. */
function* listSubschemas(schema: unknown): Generator<SchemaObject> {
  if (Array.isArray(schema)) for (const each of schema) yield* listSubschemas(each)
  if (!isObject(schema)) return
  yield schema
  for (const [key, value] of Object.entries(schema)) {
    const parts = keywordsWithNamedSchemas.has(key) && isObject(value) ? Object.values(value) : value
    if (!dataKeywords.has(key)) yield* listSubschemas(parts)
  }
}
