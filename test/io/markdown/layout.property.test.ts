import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scaleRuns } from '../../harness/property-runs.ts'
import { print, printPieces, withoutColours } from './print.ts'

const words = ['a', 'bc', 'word', '日', '本語', 'é', 'e\u0301', '🎉', '👩‍👩‍👧', '7', 'https://e.f/_g']
const marks = [
  ...'* ** _ ` `` ~~ [ ]( ) < > \\ | : . # - + !'.split(' '),
  ...['\n> ', '\n- ', '\n  - ', '\n1. ', '\n- [ ] ', '\n# ', '\n---\n', '\n===\n', '\n|-|-|\n', '\n| '],
  ...[' | ', '\n    ', '\n\t', '\n-\t', '\n```\n', '\n~~~\n', '\n```js\n', '\n> ```\n'],
  ...[' ', ' ', ' ', ' ', '  ', '\t', '\n', '\n', '\n\n', '\r\n'],
]
const controls = [
  ...['\r', '\x1b[31m', '\x1b]8;;x\x07', '\x9b', '\0', '\b', '\u202e', '\x7f', '&#27;', '&#x202e;', '&#155;'],
]
const createTextArbitrary = (...kinds: string[][]) =>
  fc.array(fc.constantFrom(...kinds.flat()), { maxLength: 60 }).map((pieces) => pieces.join(''))
const columns = fc.constantFrom(undefined, 10, 40, 80)
const cutOffsets = fc.array(fc.nat(), { maxLength: 20 })

function cutAt(text: string, where: number[]): string[] {
  const ends = [...new Set(where.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
  return [...ends, text.length].map((end, at) => text.slice(ends[at - 1] ?? 0, end))
}

const anyText = fc.oneof(
  createTextArbitrary(words, marks, controls),
  fc.string({ unit: 'binary', maxLength: 100 }),
)

const removeNonLetters = (text: string) => text.replace(/[^\p{L}\p{N}]/gu, '')
/** Marks except for code blocks with a language, because parley does not print the language. */
const marksWithoutLanguage = marks.filter((mark) => !mark.includes('js'))
/**
 * Returns true if layout keeps the order of letters: no code block has a language, no link repeats its
 * address, and no line may make a table, because a wide table repeats its header.
 */
const keepsLetterOrder = (text: string) =>
  !/(```|~~~)[^\n]*[\p{L}\p{N}]/u.test(text) &&
  !/\[([^\]\n]*)\]\(\1\)/.test(text) &&
  !/^(?=.*-)(?=.*\|)[^\p{L}\p{N}\n]*$/mu.test(text)

test('Markdown layout prints the same text, whatever the pieces in which it arrives', async () => {
  const property = fc.asyncProperty(
    anyText,
    cutOffsets,
    columns,
    fc.boolean(),
    async (text, where, columns, isColoured) => {
      const options = { columns, isColoured }
      const whole = await print(text, options)
      expect((await printPieces(cutAt(text, where), options)).join('')).toBe(whole)
      expect((await printPieces([...text], options)).join('')).toBe(whole)
    },
  )
  await fc.assert(property, scaleRuns(300))
})

test('Markdown layout prints no control character of the text', async () => {
  const property = fc.asyncProperty(anyText, columns, async (text, columns) => {
    const shown = await print(text, { columns, isColoured: true })
    expect(withoutColours(shown)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    // Each colour ends before the next one and before the line end.
    expect(shown.replace(/\x1b\[\d[\d;]*m[^\x1b\n]+\x1b\[0m/g, '')).not.toContain('\x1b')
  })
  await fc.assert(property, scaleRuns(300))
})

test('Markdown layout prints the same text with and without colours', async () => {
  const property = fc.asyncProperty(anyText, columns, async (text, columns) => {
    const shown = await print(text, { columns, isColoured: true })
    expect(withoutColours(shown)).toBe(await print(text, { columns }))
  })
  await fc.assert(property, scaleRuns(300))
})

test('Markdown layout neither loses nor moves a letter', async () => {
  const property = fc.asyncProperty(
    createTextArbitrary(words, marksWithoutLanguage).filter(keepsLetterOrder),
    columns,
    async (text, columns) => {
      expect(removeNonLetters(await print(text, { columns }))).toBe(removeNonLetters(text))
    },
  )
  await fc.assert(property, scaleRuns(1000))
})

test('Markdown layout neither loses nor moves a character of code, including blanks', async () => {
  const line = fc.array(
    fc.constantFrom(...words, ' ', '"', "'", '/*', '//', '<', '{', '#', 'r#', '${', '\\', '='),
    { maxLength: 20 },
  )
  const code = fc.array(
    line.map((pieces) => `${pieces.join('')}.`),
    { minLength: 1, maxLength: 6 },
  )
  const property = fc.asyncProperty(code, async (lines) => {
    const shown = await print(`\`\`\`js\n${lines.join('\n')}\n\`\`\``, { isColoured: true })
    expect(withoutColours(shown)).toBe(lines.map((each) => `  ${each}\n`).join(''))
  })
  await fc.assert(property, scaleRuns(500))
})
