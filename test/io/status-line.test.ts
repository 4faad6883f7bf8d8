import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { StatusLine } from '../../src/io/status-line.ts'

test('the status line of a batch erases all its rows after the terminal became narrower', () => {
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
  const takeWritten = () => {
    const text = written
    written = ''
    return text
  }
  const line = new StatusLine(stream)
  const long = 'x'.repeat(79)
  line.show(long)
  expect(takeWritten()).toBe(`\r\x1b[2K${long}`)
  stream.columns = 30
  line.show('short')
  expect(takeWritten()).toBe('\x1b[2A\r\x1b[Jshort')
  line.show('shorter')
  line.printAbove(() => {
    written += 'printed\n'
  })
  line.remove()
  expect(takeWritten()).toBe('\r\x1b[2Kshorter\r\x1b[2Kprinted\nshorter\r\x1b[2K')
})
