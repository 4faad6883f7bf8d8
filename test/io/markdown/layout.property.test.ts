import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scaleRuns } from '../../harness/property-runs.ts'
import {
  anyText,
  columns,
  createTextArbitrary,
  cutAt,
  cutOffsets,
  keepsLetterOrder,
  marksWithoutLanguage,
  removeNonLetters,
  words,
} from './arbitraries.ts'
import { print, printPieces, withoutColours } from './print.ts'

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

describe('letters in Markdown layout', () => {
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
      {
        maxLength: 20,
      },
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
})
