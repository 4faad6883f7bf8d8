import { isObject, tryParseJson } from '../wire/json/parse.ts'

/** Limits of a sample, because a schema can describe more values than fit into memory. */
const [maxValues, maxDepth, maxTextLength] = [10_000, 100, 1000]

const heading = 'JSON Schema:\n'

/** Returns JSON that matches the schema in the last text that has one, or `undefined` if none has. */
export function createSampleForTexts(texts: readonly string[]): string | undefined {
  const withSchema = texts.findLast((text) => text.includes(heading))
  if (withSchema === undefined) return undefined
  const schema = tryParseJson(withSchema.slice(withSchema.indexOf(heading) + heading.length))
  return isObject(schema) ? createSample(schema) : undefined
}

/**
 * Returns JSON that matches a schema of objects, arrays, numbers, strings and choices. Other keywords are
 * ignored.
 */
export function createSample(schema: object): string {
  let left = maxValues
  const make = (part: unknown, depth = 0): unknown => {
    if (!isObject(part) || left-- <= 0 || depth > maxDepth) return null
    if (typeof part.$ref === 'string') return make(resolveReference(schema, part.$ref), depth + 1)
    if ('const' in part) return part.const
    if (Array.isArray(part.enum)) return part.enum[0]
    const others = [part.anyOf, part.oneOf, part.allOf].find(Array.isArray)
    if (others) return make(others[0], depth + 1)
    const { properties = {}, required, maximum = 1, minItems = 1, minLength = 0 } = part
    const [type] = [part.type ?? (part.properties ? 'object' : 'string')].flat()
    if (type === 'object') {
      const names = Array.isArray(required) ? required.map(String) : []
      return Object.fromEntries(
        names.map((name) => [name, make(ownField(properties, name) ?? {}, depth + 1)]),
      )
    }
    if (type === 'array') {
      const length = Math.min(Number(minItems), left)
      return Array.from({ length }, () => make(part.items, depth + 1))
    }
    if (type === 'number' || type === 'integer') return part.minimum ?? Math.min(1, Number(maximum))
    if (type === 'boolean') return true
    return type === 'null' ? null : 'text'.padEnd(Math.min(Number(minLength), maxTextLength), '.')
  }
  return JSON.stringify(make(schema))
}

/** Resolves a reference such as `#/$defs/name`. */
const resolveReference = (schema: unknown, reference: string): unknown =>
  reference.split('/').slice(1).reduce(ownField, schema)

const ownField = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
