/** Keywords of draft 2020-12 whose value is a schema, a list of schemas, or schemas by name. */
const applicators = {
  one: [
    'items',
    'contains',
    'additionalProperties',
    'propertyNames',
    'not',
    'if',
    'then',
    'else',
    'unevaluatedItems',
    'unevaluatedProperties',
  ],
  list: ['prefixItems', 'allOf', 'anyOf', 'oneOf'],
  named: ['$defs', 'definitions', 'properties', 'patternProperties', 'dependentSchemas'],
}

export type SchemaObject = Record<string, unknown>

/** A schema and all in it, each with its place; `true` and `false` are left out. */
export function* subschemasOf(
  schema: unknown,
  place = '$',
): Generator<[place: string, schema: SchemaObject]> {
  if (typeof schema !== 'object' || schema === null) return
  const object = schema as SchemaObject
  yield [place, object]
  for (const key of Object.keys(object)) {
    const value = object[key]
    const below = `${place}.${key}`
    if (applicators.one.includes(key)) yield* subschemasOf(value, below)
    else if (applicators.list.includes(key))
      for (const [index, each] of (value as unknown[]).entries())
        yield* subschemasOf(each, `${below}[${index}]`)
    else if (applicators.named.includes(key))
      for (const [name, each] of Object.entries(value as object))
        yield* subschemasOf(each, `${below}.${name}`)
  }
}
