import { isObject, tryParseJson } from '../wire/json/parse.ts'

/** The most values of one sample, the most levels, and the longest text: a schema may ask for more than there is memory. */
const [mostValues, deepest, longestText] = [10_000, 100, 1000]

const heading = 'JSON Schema:\n'

/** JSON that fits the simple schema in one of the texts; `undefined` if none has a schema. */
export function sampleFor(texts: readonly string[]): string | undefined {
  const asking = texts.findLast((text) => text.includes(heading))
  if (asking === undefined) return undefined
  const schema = tryParseJson(asking.slice(asking.indexOf(heading) + heading.length))
  return isObject(schema) ? sampleOf(schema) : undefined
}

/** JSON that fits a schema of objects, lists, numbers, texts and choices. Other keywords are ignored. */
export function sampleOf(schema: object): string {
  let left = mostValues
  const make = (part: unknown, depth = 0): unknown => {
    if (!isObject(part) || left-- <= 0 || depth > deepest) return null
    const found = typeof part.$ref === 'string' ? follow(schema, part.$ref) : part
    if (found !== part) return make(found, depth + 1)
    if ('const' in part) return part.const
    const choices = [part.enum, part.examples].find(Array.isArray)
    if (choices) return choices[0]
    const others = [part.anyOf, part.oneOf, part.allOf].find(Array.isArray)
    if (others) return make(others[0], depth + 1)
    const { type, minimum: least, maximum: most } = part
    const [kind] = Array.isArray(type) ? type : [type ?? ('properties' in part ? 'object' : 'string')]
    if (kind === 'object') {
      const { properties, required } = part
      const names = Array.isArray(required) ? required.map(String) : []
      const of = (name: string) =>
        isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : {}
      return Object.fromEntries(names.map((name) => [name, make(of(name), depth + 1)]))
    }
    if (kind === 'array') {
      const items = []
      for (let count = Number(part.minItems ?? 1); items.length < count && left > 0; )
        items.push(make(part.items, depth + 1))
      return items
    }
    if (kind === 'number' || kind === 'integer') return Number(least ?? Math.min(1, Number(most ?? 1)))
    if (kind === 'boolean') return true
    return kind === 'null' ? null : 'text'.padEnd(Math.min(Number(part.minLength ?? 0), longestText), '.')
  }
  return JSON.stringify(make(schema))
}

/** What `#/$defs/name` leads to. */
function follow(schema: unknown, reference: string): unknown {
  let found = schema
  for (const name of reference.split('/').slice(1))
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined
  return found
}
