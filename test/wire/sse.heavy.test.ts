import { expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import { createSseDecoder } from '../../src/wire/sse.ts'

const mebibyte = 2 ** 20
const piece = (start: string, end: string) => Buffer.from(start.padEnd(mebibyte - end.length, 'x') + end)
const refusal = new CliError('response', 'the stream sent an event of more than 64 MiB')

test.each([
  ['one line', Buffer.from(`:\n${'x'.repeat(mebibyte)}`), piece('', ''), '', 0],
  ['several lines', piece('data:', '\n'), piece('data:', '\n'), '\n', 1],
  ['a bare object with empty lines', piece('{"', '\n'), piece('', '\n\n'), '"}\n', 1],
])(
  'the decoder accepts a server-sent event of 64 MiB and rejects a longer event: %s',
  (_, first, more, end, count) => {
    const filled = () => {
      const decoder = createSseDecoder()
      for (const bytes of [first, ...Array<Buffer>(63).fill(more)]) expect(decoder.push(bytes)).toEqual([])
      return decoder
    }
    expect(() => filled().push(Buffer.from('x'))).toThrow(refusal)
    expect(filled().push(Buffer.from(end))).toHaveLength(count)
  },
)
