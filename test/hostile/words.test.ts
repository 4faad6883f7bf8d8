import { expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'
import { expectNoCrash, prototypeNames } from './places.ts'

test.each(['content-encoding', 'content-type', 'retry-after'])(
  'P42: parley does not crash on a name of a prototype in the header %s',
  async (name) => {
    for (const word of prototypeNames) {
      for (const status of [200, 400]) {
        const exchange = answering(message('a'), { status, headers: { [name]: word } })
        await expectNoCrash(() => ({ argv: ['chat', 'hi'], options: { exchange } }), '')
      }
    }
  },
)

test.each(prototypeNames.slice(0, -1))('P42: parley exits with 2 or 3 for the name %s', async (word) => {
  for (const line of ['', 'help', 'events', 'help events', 'config get', 'chat hi --profile']) {
    const { code, err } = await run([...line.split(' ').filter(Boolean), word])
    expect([2, 3], `${line}: ${err}`).toContain(code)
  }
  expect((await run(['config', 'set', word, 'x'])).code).toBe(2)
})
