import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { scaleRuns } from '../../harness/property-runs.ts'
import { anything, columns, cut, isPlain, lettersOf, places, textOf, unnamed, words } from './arbitraries.ts'
import { print, printPieces, withoutColours } from './print.ts'

test('Markdown layout prints the same for any split of a text', async () => {
  const property = fc.asyncProperty(
    anything,
    places,
    columns,
    fc.boolean(),
    fc.boolean(),
    async (text, where, columns, isColoured, isStreamed) => {
      const options = { columns, isColoured, isStreamed }
      const whole = await print(text, options)
      expect((await printPieces(cut(text, where), options)).join('')).toBe(whole)
      expect((await printPieces([...text], options)).join('')).toBe(whole)
    },
  )
  await fc.assert(property, scaleRuns(300))
})

test('Markdown layout prints no control character of the text', async () => {
  const property = fc.asyncProperty(anything, columns, async (text, columns) => {
    const shown = await print(text, { columns, isColoured: true })
    expect(withoutColours(shown)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    // Each colour ends before the next one and before the line end.
    expect(shown.replace(/\x1b\[\d[\d;]*m[^\x1b\n]+\x1b\[0m/g, '')).not.toContain('\x1b')
  })
  await fc.assert(property, scaleRuns(300))
})

test('Markdown layout prints the same text with and without colours', async () => {
  const property = fc.asyncProperty(anything, columns, async (text, columns) => {
    const shown = await print(text, { columns, isColoured: true })
    expect(withoutColours(shown)).toBe(await print(text, { columns }))
  })
  await fc.assert(property, scaleRuns(300))
})

describe('letters in Markdown layout', () => {
  test('Markdown layout loses and moves no letter', async () => {
    const property = fc.asyncProperty(
      textOf(words, unnamed).filter(isPlain),
      columns,
      fc.boolean(),
      async (text, columns, isStreamed) => {
        expect(lettersOf(await print(text, { columns, isStreamed }))).toBe(lettersOf(text))
      },
    )
    await fc.assert(property, scaleRuns(1000))
  })

  test('Markdown layout loses and moves no character of code, including blanks', async () => {
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
