import { expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'
import { prototypeNames, runWithText } from './places.ts'

test.each([
  ['content-encoding', 'chat'],
  ['content-type', 'chat'],
  ['retry-after', 'chat'],
])('P42: parley handles any word in the header %s', async (name, command) => {
  for (const word of prototypeNames) {
    for (const status of [200, 400]) {
      const exchange = answering(message('a'), { status, headers: { [name]: word } })
      await runWithText(() => ({ argv: [command, 'hi'], options: { exchange } }), '')
    }
  }
})

test.each(prototypeNames.slice(0, -1))(
  'P42: the command-line argument %s is an unknown name, not a bug',
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
