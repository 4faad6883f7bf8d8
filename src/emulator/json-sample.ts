import { isObject, tryParseJson } from '../wire/json/parse.ts'

/** Limits of a sample, because a schema can require more values than fit into memory. */
const [maxValues, maxDepth, maxSampleTextLength] = [10_000, 100, 1000]

const schemaHeading = 'JSON Schema:\n'

export function createJsonSampleForPrompt(texts: readonly string[]): string | undefined {
  const withSchema = texts.findLast((text) => text.includes(schemaHeading))
  if (withSchema === undefined) return undefined
  const schema = tryParseJson(withSchema.slice(withSchema.indexOf(schemaHeading) + schemaHeading.length))
  return isObject(schema) ? createJsonSample(schema) : undefined
}

/** Creates JSON that matches a JSON Schema. Supports only the keywords that this function names. */
export function createJsonSample(schema: object): string {
  let left = maxValues
  const createValue = (part: unknown, depth = 0): unknown => {
    if (!isObject(part) || left-- <= 0 || depth > maxDepth) return null
    if (typeof part.$ref === 'string') return createValue(resolveReference(schema, part.$ref), depth + 1)
    if ('const' in part) return part.const
    if (Array.isArray(part.enum)) return part.enum[0]
    const alternatives = [part.anyOf, part.oneOf, part.allOf].find(Array.isArray)
    if (alternatives) return createValue(alternatives[0], depth + 1)
    const { properties = {}, required, maximum = 1, minItems = 1, minLength = 0 } = part
    const [type] = [part.type ?? (part.properties ? 'object' : 'string')].flat()
    if (type === 'object') {
      const names = Array.isArray(required) ? required.map(String) : []
      return Object.fromEntries(
        names.map((name) => [name, createValue(ownField(properties, name) ?? {}, depth + 1)]),
      )
    }
    if (type === 'array') {
      const length = Math.min(Number(minItems), left)
      return Array.from({ length }, () => createValue(part.items, depth + 1))
    }
    if (type === 'number' || type === 'integer') return part.minimum ?? Math.min(1, Number(maximum))
    if (type === 'boolean') return true
    return type === 'null' ? null : 'text'.padEnd(Math.min(Number(minLength), maxSampleTextLength), '.')
  }
  return JSON.stringify(createValue(schema))
}

const resolveReference = (schema: unknown, reference: string): unknown =>
  reference.split('/').slice(1).reduce(ownField, schema)

const ownField = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
