import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { StatusLine } from '../../src/io/status-line.ts'

test('the status line is erased before another status or a line above it, and shown again after the line', () => {
  const screen = new PassThrough({ encoding: 'utf8' })
  const line = new StatusLine({ isTerminal: true, open: () => screen, writeSync: () => 0 })
  line.show('one')
  line.show('one')
  line.show('two')
  line.printAbove(() => screen.write('printed\n'))
  expect([line.remove(), line.remove()]).toEqual([true, false])
  line.printAbove(() => screen.write('more\n'))
  expect(screen.read()).toBe('\r\x1b[2Kone\r\x1b[2Ktwo\r\x1b[2Kprinted\ntwo\r\x1b[2Kmore\n')
})
