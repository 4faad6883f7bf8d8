import { PassThrough, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { ArraySet } from '../../src/array-set.ts'
import type { Context } from '../../src/context.ts'
import { Deadline } from '../../src/deadline.ts'
import { createPrompter, InputEndedError } from '../../src/io/question.ts'
import { realTimers } from '../../src/timers.ts'

/** Creates a terminal with its typed keys, its output and its raw state. */
function createTerminal(suspend?: () => void) {
  const keys = new PassThrough()
  const screen = { text: '', isRaw: false }
  const stream = Object.assign(
    new Writable({
      write(chunk, _, done) {
        screen.text += chunk
        done()
      },
    }),
    { columns: 80 },
  )
  const resize = (columns: number) => {
    stream.columns = columns
    stream.emit('resize')
  }
  const cleanups = new ArraySet<() => unknown>()
  const context = {
    host: {
      stdin: {
        kind: 'terminal',
        open: () => keys,
        setRaw(isRaw: boolean) {
          screen.isRaw = isRaw
        },
        suspend: () => suspend?.(),
      },
      stderr: { isTerminal: true, columns: 80, open: () => stream, writeSync: () => 0 },
      env: {},
    },
    messages: { hold() {}, release() {} },
    cleanups,
    deadline: new Deadline(realTimers),
  } as Pick<Context, never> as Context
  const prompter = createPrompter(context)
  const shows = (text: string) => expect.poll(() => screen.text).toContain(text)
  return { keys, screen, stream, cleanups, prompter, shows, resize }
}

test('a question that parley withdraws gets no answer, and the typed text answers no later question', async () => {
  const { keys, screen, cleanups, prompter, shows } = createTerminal()
  const withdrawal = new AbortController()
  const answer = prompter.prompt('one? ', { signal: withdrawal.signal })
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
  const next = prompter.prompt('two? ')
  await shows('two? ')
  keys.write('no\r')
  expect(await next).toBe('no')
})

test('closing a prompter withdraws its open question at once', async () => {
  const { screen, prompter, shows } = createTerminal()
  const answer = prompter.prompt('secret: ', { isHidden: true })
  await shows('secret: ')
  prompter.close()
  expect(screen).toEqual({ isRaw: false, text: '\x1b[?2004hsecret: \x1b[?2004l\n' })
  await expect(answer).rejects.toBeInstanceOf(InputEndedError)
})

test('an unfinished line at the end of the input is not an answer to a question', async () => {
  const { keys, prompter, shows } = createTerminal()
  const answer = prompter.prompt('one? ')
  await shows('one? ')
  keys.end('y')
  await expect(answer).rejects.toBeInstanceOf(InputEndedError)
  await expect(prompter.prompt('two? ')).rejects.toBeInstanceOf(InputEndedError)
})

test('Enter ends the answer to a question, and pasted lines are one answer', async () => {
  const { keys, screen, prompter, shows } = createTerminal()
  const answer = prompter.prompt('one? ', { takesLines: true })
  await shows('one? ')
  keys.write('n \x1b[200~a\rb\r\nc\r\x1b[201~')
  await shows('c\r\n')
  keys.write('d\re\r')
  expect(await answer).toBe('n a\nb\nc\nd')
  expect(screen.text).toMatch(/^\x1b\[\?2004h.*\x1b\[\?2004l$/s)
  expect(keys.listenerCount('keypress')).toBe(0)

  const next = prompter.prompt('two? ', { takesLines: true })
  await shows('two? ')
  keys.write('f\rg\r')
  expect(await next).toBe('f')
})

test('pasted lines are one answer to a hidden question, too, so a broken secret is refused', async () => {
  const { keys, screen, prompter, shows } = createTerminal()
  const answer = prompter.prompt('secret: ', { isHidden: true })
  await shows('secret: ')
  keys.write('\x1b[200~a\rb\r\x1b[201~\r')
  expect(await answer).toBe('a\nb')
  expect(screen.text).toBe('\x1b[?2004hsecret: \x1b[?2004l\n')
})

test('Ctrl-Z suspends parley in the normal terminal mode, drops the typed text and repeats the question', async () => {
  const suspended: boolean[] = []
  const { keys, screen, prompter, shows } = createTerminal(() => {
    suspended.push(screen.isRaw)
    screen.text += '[suspended]'
  })
  const answer = prompter.prompt('one? ', { takesLines: true })
  await shows('one? ')
  keys.write('\x1b[200~n a\rb\x1b[201~c\x1a')
  await shows('[suspended]')
  expect(suspended).toEqual([false])
  expect(screen.isRaw).toBe(true)
  const [before = '', after = ''] = screen.text.split('[suspended]')
  expect(before.endsWith('\x1b[?2004l\n')).toBe(true)
  expect(after).toMatch(/^\x1b\[\?2004h.*one\? /s)
  keys.write('yes\r')
  expect(await answer).toBe('yes')
})

test('closing the window of the terminal ends a question like the end of the input', async () => {
  const { keys, screen, prompter, shows } = createTerminal()
  const answer = prompter.prompt('one? ')
  await shows('one? ')
  Object.defineProperty(screen, 'isRaw', {
    set() {
      throw new Error('EIO')
    },
  })
  keys.destroy(new Error('EIO'))
  await expect(answer).rejects.toThrow(InputEndedError)
  await expect(prompter.prompt('two? ')).rejects.toThrow(InputEndedError)
})

test('a question is not printed again if the terminal gets narrower, because the terminal reflows it', async () => {
  const { keys, screen, prompter, shows, resize } = createTerminal()
  const answer = prompter.prompt('may this tool run? ')
  await shows('may this tool run? ')
  screen.text = ''
  resize(10)
  keys.write('yes')
  await shows('yes')
  expect(screen.text).toBe('yes')
  keys.write('\r')
  expect(await answer).toBe('yes')
})

test('a question that needs fewer rows because the terminal got wider erases nothing above the question', async () => {
  const { keys, screen, stream, prompter, shows, resize } = createTerminal()
  const answer = prompter.prompt('one? ')
  await shows('one? ')
  resize(20)
  // Node counts the rows of an answer only if each key arrives alone.
  for (const key of `n ${'a'.repeat(40)}`) keys.write(key)
  await shows(`n ${'a'.repeat(30)}`)
  screen.text = ''
  resize(100)
  keys.write('\x7f')
  await shows('one? n aaa')
  expect(screen.text).not.toMatch(/\x1b\[\d*A/)
  keys.write('\r')
  await answer
  expect(stream.listenerCount('resize')).toBe(0)
})
