import { expect, test } from 'vitest'
import { interceptInterrupt } from '../src/signals.ts'
import { sseHead, textDelta } from './faults/answers.ts'
import { preloading, start } from './harness/process.ts'
import { serve } from './harness/server.ts'

test('a prompt or pager also gets a SIGINT that arrived just before its start (needs signals)', async () => {
  let count = 0
  const ignore = () => void count++
  process.on('SIGINT', ignore)
  const taken = new Promise<string>((resolve) => {
    process.kill(process.pid, 'SIGINT')
    interceptInterrupt(() => resolve('taken'))
  })
  expect(await taken).toBe('taken')
  expect([count, process.listeners('SIGINT').includes(ignore)]).toEqual([0, true])
  process.off('SIGINT', ignore)
})

test('parley ends by SIGINT after Ctrl-C, even if the reader of its pipe ends first (needs signals)', async () => {
  // The signal arrives while parley writes the second word, so Node has not handled it when the write fails.
  const killing = preloading(`
    const { _write } = process.stdout
    process.stdout._write = function (chunk, ...rest) {
      if (String(chunk).includes('two')) process.kill(process.pid, 'SIGINT')
      return _write.call(this, chunk, ...rest)
    }`)
  let sendSecondWord = () => {}
  const server = await serve((socket) => {
    socket.write(sseHead + textDelta('one '))
    sendSecondWord = () => void socket.write(textDelta('two ') + textDelta('three '))
  })
  const env = { PARLEY_BASE_URL: server.url, ...killing }
  const { child, ended } = start(['chat', 'hi', '--stream'], { env })
  child.stdout?.once('data', () => child.stdout?.once('close', sendSecondWord).destroy())
  const err = 'parley: interrupted: the answer was cut off\n'
  expect(await ended).toMatchObject({ signal: 'SIGINT', out: 'one ', err })
})
