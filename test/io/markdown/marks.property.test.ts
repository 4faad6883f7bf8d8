import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { often } from '../../harness/often.ts'
import { print, withoutColours } from './print.ts'

const texts = [
  'a',
  'bc',
  'Word',
  '10',
  '7',
  'é',
  '日本',
  '重点',
  'x.js',
  '.js',
  '://',
  'std::',
  'h',
  'http://a.b/',
]
const signs = [
  '(',
  ')',
  '[',
  ']',
  '<',
  '>',
  '/',
  ',',
  '.',
  ':',
  '"',
  "'",
  '=',
  '+',
  '-',
  '$',
  '|',
  '!',
  '&lt;',
  '<br>',
]
const marks = ['*', '**', '***', '****', '_', '__', '___', '~', '~~', '`', '``', '```', '\\', '\\*', '\\\\']
const piecesOf = (...kinds: string[][]) =>
  fc.array(fc.constantFrom(...kinds.flat()), { maxLength: 5 }).map((pieces) => pieces.join(''))
/** After a letter, so that it is not the beginning of a block. */
const lineOf = (word: fc.Arbitrary<string>) =>
  fc
    .array(
      word.filter((each) => each !== ''),
      { maxLength: 8 },
    )
    .map((words) => ['a', ...words].join(' '))
const blocks = fc.constantFrom(
  ['', ''],
  ['- ', '• '],
  ['> ', '│ '],
  ['# ', ''],
  ['1. ', '1. '],
  ['- [x] ', '☑ '],
)

const plain = piecesOf(texts, signs)
/** No address, as those in angle brackets are shown without them, and no mark after `](` is read. */
const hasAddress = (text: string) => /<h|\]\(/.test(text)

describe('no mark is lost', () => {
  test('if none has a partner on its line: it is the same text', async () => {
    const mark = fc.constantFrom('*', '**', '***', '****', '_', '__', '___', '~', '~~', '`', '``', '```')
    const word = fc.tuple(plain, mark, plain).map((parts) => parts.join(''))
    const line = fc
      .tuple(fc.array(plain, { maxLength: 4 }), word, fc.array(plain, { maxLength: 4 }))
      .map(([before, marked, after]) =>
        ['a', ...before, marked, ...after].filter((each) => each !== '').join(' '),
      )
    const lines = fc.array(fc.tuple(blocks, line), { minLength: 1, maxLength: 4 })
    const property = fc.asyncProperty(lines, fc.boolean(), async (lines, isColoured) => {
      fc.pre(!lines.some(([, text]) => hasAddress(text)))
      const source = lines.map(([[start], text]) => `${start}${text}`).join('\n\n')
      const shown = withoutColours(await print(source, { isColoured })).replace(/\n\n/g, '\n')
      expect(shown).toBe(lines.map(([[, lead], text]) => `${lead}${text}\n`).join(''))
    })
    await fc.assert(property, often(1000))
  })

  test('if words have any marks: those that are left out come in pairs, each with text between', async () => {
    const word = piecesOf(texts, signs, marks)
    const property = fc.asyncProperty(lineOf(word), async (text) => {
      fc.pre(!hasAddress(text))
      const lost = lostOf(text, (await print(text)).trimEnd())
      expect(lost, text).toBeDefined()
      expect(lost?.replace(/[\\ ]/g, ''), text).toMatch(/^[*_~`]*$/)
      for (const char of '*_~`') expect((lost?.split(char).length ?? 0) % 2, text).toBe(1)
    })
    await fc.assert(property, often(2000))
  })

  test('in a cell', async () => {
    const word = fc.tuple(plain, fc.constantFrom('*', '**', '_', '~~', '`'), plain)
    const cell = word.map(([before, mark, after]) => `a ${before}${mark}${after}`.replaceAll(/\||<br>/g, ''))
    const property = fc.asyncProperty(cell, async (cell) => {
      fc.pre(!hasAddress(cell))
      const shown = await print(`|n|\n|-|\n|${cell}|`)
      expect(shown.split('\n')[2]).toBe(cell)
    })
    await fc.assert(property, often(500))
  })
})

/** What is to be taken out of a text for it to become what is shown; `undefined` where that is not possible. */
function lostOf(text: string, shown: string): string | undefined {
  let lost = ''
  let at = 0
  for (const char of text) {
    if (shown.startsWith(char, at)) at += char.length
    else lost += char
  }
  return at === shown.length ? lost : undefined
}
