import { expect, test } from 'vitest'
import { interceptInterrupt } from '../src/signals.ts'

test('a SIGINT that arrives just before a prompt or pager takes it over goes to the prompt or pager (needs signals)', async () => {
  let count = 0
  const ignore = () => void count++
  process.on('SIGINT', ignore)
  const taken = new Promise<string>((resolve) => {
    process.kill(process.pid, 'SIGINT')
    interceptInterrupt(() => resolve('taken'))
  })
  expect(await taken).toBe('taken')
  expect({ count, isGivenBack: process.listeners('SIGINT').includes(ignore) }).toEqual({
    count: 0,
    isGivenBack: true,
  })
  process.off('SIGINT', ignore)
})
