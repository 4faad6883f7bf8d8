import { findEndOfJsonValue, skipBlanks } from './scanner.ts'

export function findJsonSyntaxError(text: string, maxDepth: number) {
  try {
    const end = skipBlanks(text, readValue(text, skipBlanks(text, 0), maxDepth))
    return end < text.length ? { offset: end, reason: 'end of text expected' } : undefined
  } catch (error) {
    const { message: reason, cause } = error as SyntaxError
    return { offset: cause as number, reason }
  }
}

const createSyntaxError = (offset: number, reason: string) => new SyntaxError(reason, { cause: offset })

function readValue(text: string, start: number, maxDepth: number, depth = 0): number {
  const isObject = text[start] === '{'
  if (!isObject && text[start] !== '[') return readScalar(text, start)
  const closing = isObject ? '}' : ']'
  if (depth === maxDepth) throw createSyntaxError(start, `nested more than ${maxDepth} levels deep`)
  let place = skipBlanks(text, start + 1)
  if (text[place] === closing) return place + 1
  for (;;) {
    if (isObject) {
      if (text[place] !== '"') throw createSyntaxError(place, 'property name expected')
      const colon = skipBlanks(text, readScalar(text, place))
      if (text[colon] !== ':') throw createSyntaxError(colon, 'colon expected')
      place = skipBlanks(text, colon + 1)
    }
    place = skipBlanks(text, readValue(text, place, maxDepth, depth + 1))
    if (text[place] === closing) return place + 1
    if (text[place] !== ',') throw createSyntaxError(place, `comma or '${closing}' expected`)
    place = skipBlanks(text, place + 1)
  }
}

function readScalar(text: string, start: number): number {
  const end = findEndOfJsonValue(text, start)
  try {
    JSON.parse(text.slice(start, end))
    return end
  } catch {
    const isText = text[start] === '"'
    const reason = isText ? 'string with an invalid escape, a line break or no end' : 'value expected'
    throw createSyntaxError(start, reason)
  }
}
