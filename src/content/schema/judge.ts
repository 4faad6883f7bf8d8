import { dereference, type Schema, validate } from '@cfworker/json-schema'
import { metaschema } from './metaschema.ts'
import { describeMisfits } from './misfits.ts'
import { type SchemaObject, subschemasOf } from './subschemas.ts'

const draft = '2020-12'

/** What is wrong with a schema, or how a value does not fit; empty where nothing is. */
type Problems = string[]

export interface Judge {
  problems: Problems
  judge(value: unknown): Problems
}

/**
 * Makes what checks values by a schema of draft 2020-12, which `problems` says whether it is. `format` only describes, as
 * the draft has it.
 */
export function createJudge(schema: unknown): Judge {
  const shape = findMisfits(metaschema, dereference(metaschema), schema)
  if (shape.length > 0) return { problems: shape, judge: () => shape }
  const parts = [...subschemasOf(schema)]
  for (const [, part] of parts) delete part.format
  try {
    const lookup = dereference(schema as Schema)
    const problems = parts.flatMap(([place, part]) =>
      findProblems(part, lookup).map((problem) => `${place}: ${problem}`),
    )
    // Shows a schema that is its own part without end.
    if (problems.length === 0) validate(null, schema as Schema, draft, lookup)
    return { problems, judge: (value) => findMisfits(schema as Schema, lookup, value) }
  } catch (error) {
    const problems = [
      error instanceof RangeError ? 'it refers to itself without end' : (error as Error).message,
    ]
    return { problems, judge: () => problems }
  }
}

function findMisfits(schema: Schema | boolean, lookup: Record<string, Schema | boolean>, value: unknown) {
  const isFit = validate(value, schema, draft, lookup, true)
  if (isFit.valid) return []
  const { errors } = findAll(schema, lookup, value) ?? isFit
  return describeMisfits(value, errors)
}

/** All errors of a value, where they are not too many to be kept. */
function findAll(schema: Schema | boolean, lookup: Record<string, Schema | boolean>, value: unknown) {
  try {
    return validate(value, schema, draft, lookup, false)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

function findProblems(schema: SchemaObject, lookup: Record<string, unknown>): Problems {
  const { $schema: dialect, $ref: reference, pattern, patternProperties = {} } = schema
  const patterns = [...(pattern === undefined ? [] : [pattern]), ...Object.keys(patternProperties as object)]
  return [
    ...(dialect === undefined || isDraft(dialect as string)
      ? []
      : [`$schema: ${dialect} is not JSON Schema draft ${draft}`]),
    ...(Object.hasOwn(schema, '$dynamicRef') ? ['$dynamicRef is not supported'] : []),
    ...(reference === undefined || Object.hasOwn(lookup, String(schema.__absolute_ref__))
      ? []
      : [`$ref: ${describeReference(reference as string)}`]),
    ...patterns
      .filter((each) => !isPattern(each as string))
      .map((each) => `'${each}' is no regular expression`),
  ]
}

const isDraft = (dialect: string) => /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(dialect)

const describeReference = (reference: string) =>
  `${reference} ${reference.startsWith('#') ? 'leads to no schema' : 'is outside of the file'}`

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u')
    return true
  } catch {
    return false
  }
}
