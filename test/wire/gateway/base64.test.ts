import { expect, test } from 'vitest'
import { decodeBase64 } from '../../../src/wire/gateway/base64.ts'
import { smallTexts } from '../json/texts.ts'

const withoutBreaks = (text: string) => text.replace(/[\r\n]/g, '')

/** Decodes a text inside a larger buffer. `left` is the text afterwards. */
function decode(text: string): { decoded: string | undefined; left: string; around: string } {
  const memory = Buffer.from(`<${text}>`, 'latin1')
  const decoded = decodeBase64(memory.subarray(1, -1))
  const all = memory.toString('latin1')
  return {
    decoded: decoded && Buffer.from(decoded).toString('latin1'),
    left: all.slice(1, -1),
    around: all.slice(0, 1) + all.slice(-1),
  }
}

/** Reference decoder. Accepts both alphabets, a possible length, and padding up to a multiple of four. */
function expected(text: string): string | undefined {
  const joined = withoutBreaks(text)
  const data = joined.replace(/={1,2}$/, '')
  const isPadded = data !== joined
  const isWhole = data !== '' && data.length % 4 !== 1 && (!isPadded || joined.length % 4 === 0)
  return isWhole && /^[\w+/-]*$/.test(data) ? Buffer.from(data, 'base64').toString('latin1') : undefined
}

/** Size of the chunks that the decoder handles. */
const step = 32 * 1024
const long = 'QUJD'.repeat(step / 4)

test.each([
  ['QQ', '=', '\n'],
  ['A', 'B/', '+', '-', '_', '='],
  ['A', '\r', '\n', '!', ' ', '\xff'],
])('of all short texts made of %j, %j, %j …, only valid base64 is decoded', (...pieces) => {
  for (const end of smallTexts(pieces, pieces.length > 3 ? 4 : 6)) {
    const { decoded, around } = decode(end)
    expect({ decoded, around }, JSON.stringify(end)).toEqual({ decoded: expected(end), around: '<>' })
  }
})

test.each([
  ...'QQ QQ== QUI= QUJD _-8 Q QQ= QQ=A ! _/ QU!D'.split(' '),
  ...['\n/+8=\r\n', 'QU\xffD', 'QUJD\nA!QQ'],
])('a text that ends in %j is decoded if it is base64; otherwise it stays unchanged', (end) => {
  for (const start of ['', 'QU\nJD\r\n', long, `QU\nJD${long}`, long + long, `${long + long}QUJD`]) {
    const { decoded, left, around } = decode(start + end)
    expect(decoded === expected(start + end), `${start.length}`).toBe(true)
    expect(around).toBe('<>')
    if (decoded === undefined) expect(left === start + end).toBe(true)
  }
})
