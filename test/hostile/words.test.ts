import { expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'
import { expectNoCrash, prototypeNames } from './places.ts'

test.each(['content-encoding', 'content-type', 'retry-after'])(
  'P42: parley does not crash on names such as __proto__ in the header %s',
  async (name) => {
    for (const word of prototypeNames) {
      for (const status of [200, 400]) {
        const exchange = answering(message('a'), { status, headers: { [name]: word } })
        await expectNoCrash(() => ({ argv: ['chat', 'hi'], options: { exchange } }), '')
      }
    }
  },
)

test.each(prototypeNames.slice(0, -1))(
  'P42: parley exits with 2 or 3 for the unknown name %s on the command line',
  async (word) => {
    const cases = [
      [word],
      ['help', word],
      ['events', word],
      ['help', 'events', word],
      ['config', 'set', word, 'x'],
    ]
    for (const argv of [...cases, ['config', 'get', word], ['chat', 'hi', '--profile', word]]) {
      const { code, err } = await run(argv)
      expect([2, 3], `${argv.join(' ')}: ${err}`).toContain(code)
    }
  },
)
