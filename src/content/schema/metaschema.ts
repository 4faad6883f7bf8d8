import type { Schema } from '@cfworker/json-schema'

const schema = { $ref: '#' }
const schemas = { type: 'array', minItems: 1, items: schema }
const schemaMap = { type: 'object', additionalProperties: schema }
const count = { type: 'integer', minimum: 0 }
const number = { type: 'number' }
const text = { type: 'string' }
const toggle = { type: 'boolean' }
const names = { type: 'array', items: text, uniqueItems: true }
const anchor = { type: 'string', pattern: '^[A-Za-z_][-A-Za-z0-9._]*$' }
const typeName = { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] }

const keywords: Record<string, object> = {
  $id: { type: 'string', pattern: '^[^#]*#?$' },
  $schema: text,
  $ref: text,
  $anchor: anchor,
  $dynamicRef: text,
  $dynamicAnchor: anchor,
  $vocabulary: { type: 'object', additionalProperties: toggle },
  $comment: text,
  $defs: schemaMap,
  definitions: schemaMap,
  dependencies: { type: 'object', additionalProperties: { anyOf: [schema, names] } },
  prefixItems: schemas,
  items: schema,
  contains: schema,
  additionalProperties: schema,
  properties: schemaMap,
  patternProperties: schemaMap,
  dependentSchemas: schemaMap,
  propertyNames: schema,
  if: schema,
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword.
  then: schema,
  else: schema,
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  not: schema,
  unevaluatedItems: schema,
  unevaluatedProperties: schema,
  type: { anyOf: [typeName, { type: 'array', items: typeName, minItems: 1, uniqueItems: true }] },
  enum: { type: 'array' },
  multipleOf: { type: 'number', exclusiveMinimum: 0 },
  maximum: number,
  exclusiveMaximum: number,
  minimum: number,
  exclusiveMinimum: number,
  maxLength: count,
  minLength: count,
  pattern: text,
  maxItems: count,
  minItems: count,
  uniqueItems: toggle,
  maxContains: count,
  minContains: count,
  maxProperties: count,
  minProperties: count,
  required: names,
  dependentRequired: { type: 'object', additionalProperties: names },
  title: text,
  description: text,
  deprecated: toggle,
  readOnly: toggle,
  writeOnly: toggle,
  examples: { type: 'array' },
  format: text,
  contentEncoding: text,
  contentMediaType: text,
  contentSchema: schema,
}

/**
 * What a schema of draft 2020-12 must be. The draft's own is in eight parts that are joined by `$dynamicRef`, which the
 * validator does not know; this is all of them in one.
 */
export const metaschema: Schema = { type: ['object', 'boolean'], properties: keywords }
