import { endOfString, skipBlanks } from './scanner.ts'

/** A key that one object of the text has twice, if there is any. The text is one that `JSON.parse` accepts. */
export function findRepeatedKey(text: string): string | undefined {
  /** The keys of each object around a place; `undefined` for a list. */
  const around: (Set<string> | undefined)[] = []
  for (let place = 0; place < text.length; place++) {
    const char = text[place]
    if (char === '{') around.push(new Set())
    else if (char === '[') around.push(undefined)
    else if (char === '}' || char === ']') around.pop()
    else if (char === '"') {
      const end = endOfString(text, place)
      const keys = around.at(-1)
      if (keys && text[skipBlanks(text, end)] === ':') {
        const key = JSON.parse(text.slice(place, end)) as string
        if (keys.has(key)) return key
        keys.add(key)
      }
      place = end - 1
    }
  }
  return undefined
}
