import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { credentials } from '../harness/run.ts'
import { type } from '../harness/typing.ts'
import { answer, prepare } from './served.ts'

test('after Ctrl-C the last message of a batch directly follows its results (needs script)', async () => {
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
  const { screen } = await type(
    command,
    cwd,
    [
      ['1 of 3 done', '\x03'],
      ['finishing running requests', () => void second.then((socket) => socket.write(answer))],
    ],
    { ...credentials, ...env, NO_COLOR: '1' },
  )
  expect(screen).toContain('"text":"hi"')
  // The message replaces the progress line.
  expect(screen).toContain('\r\x1b[2Kparley: interrupted: 2 ok')
})
