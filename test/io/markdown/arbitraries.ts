import fc from 'fast-check'

export const words = ['a', 'bc', 'word', '日', '本語', 'é', 'e\u0301', '🎉', '👩‍👩‍👧', '7', 'https://e.f/_g']
const marks = [
  ...['*', '**', '_', '`', '``', '~~', '[', '](', ')', '<', '>', '\\', '|', ':', '.', '#', '-', '+', '!'],
  ...[
    '\n> ',
    '\n- ',
    '\n  - ',
    '\n1. ',
    '\n- [ ] ',
    '\n# ',
    '\n---\n',
    '\n===\n',
    '\n|-|-|\n',
    '\n| ',
    ' | ',
    '\n    ',
    '\n\t',
    '\n-\t',
  ],
  ...['\n```\n', '\n~~~\n', '\n```js\n', '\n> ```\n'],
  ...[' ', ' ', ' ', ' ', '  ', '\t', '\n', '\n', '\n\n', '\r\n'],
]
const controls = [
  '\r',
  '\x1b[31m',
  '\x1b]8;;x\x07',
  '\x9b',
  '\0',
  '\b',
  '\u202e',
  '\x7f',
  '&#27;',
  '&#x202e;',
  '&#155;',
]
export const createTextArbitrary = (...kinds: string[][]) =>
  fc.array(fc.constantFrom(...kinds.flat()), { maxLength: 60 }).map((pieces) => pieces.join(''))
export const columns = fc.constantFrom(undefined, 10, 40, 80)
export const cutOffsets = fc.array(fc.nat(), { maxLength: 20 })

export function cutAt(text: string, where: number[]): string[] {
  const ends = [...new Set(where.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
  return [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end))
}

export const anyText = fc.oneof(
  createTextArbitrary(words, marks, controls),
  fc.string({ unit: 'binary', maxLength: 100 }),
)

export const removeNonLetters = (text: string) => text.replace(/[^\p{L}\p{N}]/gu, '')
/** Marks except for code blocks with a language, because parley does not print the language. */
export const marksWithoutLanguage = marks.filter((mark) => !mark.includes('js'))
/**
 * Returns true if layout keeps the order of letters: no code block has a language, no link repeats its
 * address, no list numbers its items, and there is no table, because a wide table repeats its header.
 */
export const keepsLetterOrder = (text: string) =>
  !/(```|~~~)[^\n]*[\p{L}\p{N}]/u.test(text) &&
  !/\[([^\]\n]*)\]\(\1\)/.test(text) &&
  !text.includes('|-|-|') &&
  !/\d\.\s.*\d\.\s/s.test(text)
