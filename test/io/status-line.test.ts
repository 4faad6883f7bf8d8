import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { StatusLine } from '../../src/io/status-line.ts'

test('the progress line removes all its rows after the terminal became narrower', () => {
  let written = ''
  const stream = {
    isTerminal: true,
    columns: 80,
    open: () =>
      new Writable({
        write(chunk, _, done) {
          written += chunk
          done()
        },
      }),
    writeSync: () => 0,
  }
  const taken = () => {
    const text = written
    written = ''
    return text
  }
  const line = new StatusLine(stream)
  const long = 'x'.repeat(79)
  line.show(long)
  expect(taken()).toBe(`\r\x1b[2K${long}`)
  stream.columns = 30
  line.show('short')
  expect(taken()).toBe('\x1b[2A\r\x1b[Jshort')
  line.show('shorter')
  line.above(() => {
    written += 'said\n'
  })
  line.remove()
  expect(taken()).toBe('\r\x1b[2Kshorter\r\x1b[2Ksaid\nshorter\r\x1b[2K')
})
