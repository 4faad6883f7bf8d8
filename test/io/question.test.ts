import { PassThrough, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { ActiveSet } from '../../src/active-set.ts'
import { createPrompter, InputEnded } from '../../src/io/question.ts'

/** Creates a terminal with its typed keys, its output and its raw state. */
function createTerminal() {
  const keys = new PassThrough()
  const screen = { text: '', isRaw: false }
  const stream = new Writable({
    write(chunk, _, done) {
      screen.text += chunk
      done()
    },
  })
  const cleanups = new ActiveSet<() => unknown>()
  const questioner = createPrompter({
    stdin: {
      kind: 'terminal',
      open: () => keys,
      setRaw(isRaw) {
        screen.isRaw = isRaw
      },
    },
    stderr: { isTerminal: true, columns: 80, open: () => stream, writeSync: () => 0 },
    cleanups,
  })
  const shows = (text: string) => expect.poll(() => screen.text).toContain(text)
  return { keys, screen, cleanups, questioner, shows }
}

test('a withdrawn question gets no answer, and its typed text does not answer the next one', async () => {
  const { keys, screen, cleanups, questioner, shows } = createTerminal()
  const withdrawal = new AbortController()
  const answer = questioner.prompt('one? ', { signal: withdrawal.signal })
  await shows('one? ')
  keys.write('y')
  await shows('one? \x1b[6Gy')
  expect(screen.isRaw).toBe(true)
  const reason = new Error('answered elsewhere')
  withdrawal.abort(reason)
  expect(screen).toMatchObject({ isRaw: false, text: expect.stringMatching(/y\n$/) })
  await expect(answer).rejects.toBe(reason)
  expect([...cleanups]).toEqual([])

  keys.write('\ry\r')
  const next = questioner.prompt('two? ')
  await shows('two? ')
  keys.write('no\r')
  expect(await next).toBe('no')
})

test('a question that was withdrawn early is never shown', async () => {
  const { screen, questioner } = createTerminal()
  const reason = new Error('answered elsewhere')
  await expect(questioner.prompt('one? ', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  const withdrawal = new AbortController()
  const answer = questioner.prompt('one? ', { signal: withdrawal.signal })
  setImmediate(() => withdrawal.abort(reason))
  await expect(answer).rejects.toBe(reason)
  expect(screen).toEqual({ text: '', isRaw: false })
})

test('closing withdraws the open question at once', async () => {
  const { screen, questioner, shows } = createTerminal()
  const answer = questioner.prompt('secret: ', { isHidden: true })
  await shows('secret: ')
  questioner.close()
  expect(screen).toEqual({ isRaw: false, text: 'secret: \n' })
  await expect(answer).rejects.toBeInstanceOf(InputEnded)
})

test('an unfinished line at the end of the input is not an answer', async () => {
  const { keys, questioner, shows } = createTerminal()
  const answer = questioner.prompt('one? ')
  await shows('one? ')
  keys.end('y')
  await expect(answer).rejects.toBeInstanceOf(InputEnded)
  await expect(questioner.prompt('two? ')).rejects.toBeInstanceOf(InputEnded)
})
