import fc from 'fast-check'
import { expect, test } from 'vitest'
import { often } from '../../harness/often.ts'
import { anything, columns, cut, isPlain, lettersOf, places, textOf, unnamed, words } from './arbitraries.ts'
import { print, printPieces, withoutColours } from './print.ts'

test('streamed Markdown prints the same for any split of a text', async () => {
  const property = fc.asyncProperty(
    anything,
    places,
    columns,
    fc.boolean(),
    async (text, where, columns, isColoured) => {
      const options = { columns, isColoured, isStreamed: true }
      const whole = await print(text, options)
      expect((await printPieces([...text], options)).join('')).toBe(whole)
      expect((await printPieces(cut(text, where), options)).join('')).toBe(whole)
    },
  )
  await fc.assert(property, often(1000))
})

test('streamed Markdown prints the same for any split of a text with distant marks', async () => {
  const far = fc.constantFrom(
    'word ',
    '日本',
    `${'word '.repeat(15)}`,
    'x'.repeat(90),
    `${'y'.repeat(1990)} `,
  )
  const mark = fc.constantFrom(
    '*',
    '**',
    '_',
    '`',
    '``',
    '[',
    '](',
    '](/a "',
    ')',
    '<a',
    '>',
    '~~',
    '\\',
    '|',
    ' ',
    '\n',
    '\n- ',
  )
  const text = fc.array(fc.oneof(far, mark), { maxLength: 40 }).map((pieces) => pieces.join(''))
  const property = fc.asyncProperty(text, places, columns, async (text, where, columns) => {
    const options = { columns, isStreamed: true }
    const whole = await print(text, options)
    expect((await printPieces(text.match(/.{1,3}/gs) ?? [], options)).join('')).toBe(whole)
    expect((await printPieces(cut(text, where), options)).join('')).toBe(whole)
  })
  await fc.assert(property, often(500))
})

test('streamed Markdown prints no control character of the text', async () => {
  const property = fc.asyncProperty(anything, columns, async (text, columns) => {
    const shown = await print(text, { columns, isColoured: true, isStreamed: true })
    expect(withoutColours(shown)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    expect(withoutColours(shown)).toBe(await print(text, { columns, isStreamed: true }))
  })
  await fc.assert(property, often(300))
})

test('streamed Markdown loses and moves no letter', async () => {
  const text = textOf(words, unnamed).filter(isPlain)
  const property = fc.asyncProperty(text, columns, async (text, columns) => {
    expect(lettersOf(await print(text, { columns, isStreamed: true }))).toBe(lettersOf(text))
  })
  await fc.assert(property, often(1000))
})
