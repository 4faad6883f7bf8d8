import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeBatchLine } from '../../src/batch/input.ts'
import { type RawLine, splitLines } from '../../src/io/raw-lines.ts'
import { streamOf } from './pieces.ts'

/** Returns the lines that are not blank. */
async function read(whole: string | Uint8Array, size?: number, maxLineBytes = 1000) {
  const all: ({ index: number } & ReturnType<typeof decodeBatchLine>)[] = []
  for await (const lines of splitLines(streamOf(whole, size), maxLineBytes))
    for (const line of lines) all.push({ index: line.lineNumber, ...decodeBatchLine(line) })
  return all.filter((line) => !('text' in line) || line.text !== '')
}

test.each([
  ['a text without a final line break', '"a"\n"b"', ['1 "a"', '2 "b"']],
  ['a text with CR LF', '"a"\r\n"b"\r\n', ['1 "a"', '2 "b"']],
  ['a text with empty lines, and counts the empty lines', '\n"a"\n\r\n  \t\n"b"\n\n', ['2 "a"', '5 "b"']],
  ['a text with a byte order mark', '\ufeff"a"\n', ['1 "a"']],
  ['a text with a byte order mark on its own line', '\ufeff\n"a"', ['2 "a"']],
])('a batch reads the lines of %s', async (_, text, expected) => {
  const lines = await read(text)
  expect(lines.map((line) => `${line.index} ${'text' in line ? line.text : 'bad'}`)).toEqual(expected)
})

test('a batch reports lines that are too long or not UTF-8 and reads the lines after them', async () => {
  const bytes = Buffer.concat([
    Buffer.from('"\xff"\n', 'latin1'),
    Buffer.from(`"ok"\n${'x'.repeat(101)}\n"ok"`),
  ])
  expect(await read(bytes, 7, 100)).toEqual([
    { index: 1, problem: 'it is not UTF-8 text: if it is text, iconv -f latin1 -t utf-8 converts it' },
    { index: 2, text: '"ok"' },
    { index: 3, problem: expect.stringMatching(/^it is longer than/) },
    { index: 4, text: '"ok"' },
  ])
})

test('a batch accepts a line of exactly the maximum length', async () => {
  for (const size of [1, 7, 100]) {
    const lines = await read(`${'x'.repeat(10)}\n${'y'.repeat(11)}\n${'z'.repeat(10)}`, size, 10)
    expect(lines.map((line) => 'text' in line && line.text[0])).toEqual(['x', false, 'z'])
  }
})

test('a batch finds the same lines and offsets however the bytes are split', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', '\n', '\r', 'é'), maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(text, fc.integer({ min: 1, max: 70 }), async (whole, size) => {
      const cut: RawLine[] = []
      for await (const lines of splitLines(streamOf(whole, size), 1000)) cut.push(...lines)
      const pieces = whole.split('\n')
      const expected = pieces.map((piece, at) => ({
        text: piece,
        end: Buffer.byteLength(pieces.slice(0, at + 1).join('\n')) + (at < pieces.length - 1 ? 1 : 0),
        isWhole: at < pieces.length - 1,
      }))
      if (expected.at(-1)?.text === '') expected.pop()
      expect(
        cut.map(({ bytes, endOffsetBytes: end, isWhole }) => ({
          text: Buffer.from(bytes ?? []).toString(),
          end,
          isWhole,
        })),
      ).toEqual(expected)
    }),
  )
})
