import { expect, test } from 'vitest'
import { credentials, temporaryFolder } from '../harness/run.ts'
import { envFor, serve } from '../harness/server.ts'
import { runAtTerminal } from '../harness/typing.ts'

const sendsEvent = '"$NODE" "$PARLEY" events send -s sesn_1'

test.each<[string, string, Parameters<typeof runAtTerminal>[2]]>([
  ['the pipe on stdin', `sleep 60 | ${sendsEvent} "Delete it"`, [['waiting for stdin', '\x03']]],
  [
    'the pipe that -i /dev/stdin names',
    `(read -r line < /dev/tty; printf "%s" "$EVENT"; echo written >&2; exec sleep 60) | ${sendsEvent} -i /dev/stdin`,
    [
      ['waiting for /dev/stdin', '\n'],
      ['written', '\x03'],
    ],
  ],
])('G31: parley sends nothing if Ctrl-C first ends the writer of %s (needs script)', async (...row) => {
  const [, command, answers] = row
  const server = await serve(() => {})
  const event = '{"type":"user.message","content":[{"type":"text","text":"Delete it"}]}'
  const env = { ...credentials, ...envFor(server), EVENT: event }
  // The signal and the end of the input arrive in random order, so the command runs eight times.
  const runs = Array.from({ length: 8 }, () => runAtTerminal(command, temporaryFolder(), [...answers], env))
  const screens = (await Promise.all(runs)).map(({ screen }) => screen.slice(screen.indexOf('^C') + 2).trim())
  expect(new Set(screens)).toEqual(new Set(['parley: interrupted: nothing was sent']))
  expect(server.requests).toEqual([])
})

test('G31: after Ctrl-C, a batch sends no request for an unfinished line of its input (needs script)', async () => {
  const server = await serve((socket) => socket.destroy())
  const env = { ...credentials, ...envFor(server), EVENT: '"Delete it"' }
  const before = '(read -r line < /dev/tty; printf "%s" "$EVENT"; echo written >&2; exec sleep 60)'
  const typed: [string, string][] = [
    ['0 done', '\n'],
    ['written', '\x03'],
  ]
  // Without a width, the terminal gets no spinner.
  const command = `stty cols 80; ${before} | "$NODE" "$PARLEY" chat --batch /dev/stdin`
  const runs = Array.from({ length: 48 }, () => runAtTerminal(command, temporaryFolder(), [...typed], env))
  for (const { screen } of await Promise.all(runs))
    expect(screen).toMatch(/\^C.*parley: interrupted: nothing was sent; 0 ok · 0 failed/s)
  expect(server.requests).toEqual([])
})
