import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { credentials } from '../harness/run.ts'
import { typeAtTerminal } from '../harness/typing.ts'
import { answer, prepare } from './served.ts'

/** Types Ctrl-C while the second of three lines waits for its answer. `react` gets the socket of that line. */
async function interruptBatch(react: (second: Promise<Socket>) => string | (() => void)) {
  let holdRequest: (socket: Socket) => void
  const second = new Promise<Socket>((resolve) => {
    holdRequest = resolve
  })
  let requests = 0
  const { cwd, env } = await prepare(3, (socket) => {
    if (++requests === 1) socket.write(answer)
    else holdRequest(socket)
  })
  const command = '"$NODE" "$PARLEY" chat --batch in.ndjson --concurrency 1'
  const { screen } = await typeAtTerminal(
    command,
    cwd,
    [
      ['1 of 3 done', '\x03'],
      ['finishing running requests', react(second)],
    ],
    { ...credentials, ...env, NO_COLOR: '1' },
  )
  expect(screen).toContain('"text":"hi"')
  return screen
}

test('after Ctrl-C the last message of a batch directly follows its results (needs script)', async () => {
  const screen = await interruptBatch((second) => () => void second.then((socket) => socket.write(answer)))
  // The message replaces the progress line.
  expect(screen).toContain('\r\x1b[2Kparley: interrupted: 2 ok')
})

test('after a second Ctrl-C the last message of a batch replaces the progress line (needs script)', async () => {
  const screen = await interruptBatch(() => '\x03')
  expect(screen).toContain('\r\x1b[2Kparley: interrupted: 1 ok')
  expect(screen).toContain('1 request without an answer may be billed')
})
