import { afterEach, describe, expect, test } from 'vitest'
import { messageStop, sseEvent, sseHead, textDelta } from '../../faults/answers.ts'
import { credentials, temporaryFolder } from '../../harness/run.ts'
import { envFor, type ScriptedServer, serve } from '../../harness/server.ts'
import { runAtTerminal } from '../../harness/typing.ts'

let server: ScriptedServer | undefined
afterEach(() => server?.close())

type Step = [shown: string, events: string]

/** Streams to a terminal. In each step, the service sends events when the terminal has shown a text. */
async function stream(begin: string, steps: Step[], argv = '--stream') {
  let send = (_: string) => {}
  server = await serve((socket) => {
    send = (text) => void socket.write(text)
    send(begin)
  })
  const env = { ...credentials, ...envFor(server), NO_COLOR: '1' }
  const command = `stty cols 60 rows 24; printf '{}' > schema.json; "$NODE" "$PARLEY" chat hi ${argv}`
  const reactions = steps.map(([shown, events]): [string, () => void] => [shown, () => send(events)])
  return runAtTerminal(command, temporaryFolder(), reactions, env)
}

const ended = `${sseEvent({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })}${messageStop}`

/** Returns the lines of the final screen. A rewritten line has its last text. */
const linesOf = (screen: string) =>
  screen
    .replaceAll('\x1b[1G', '\0')
    .replaceAll(/\x1b\[\??[\d;]*[a-zA-Z]/g, '')
    .split(/\r*\n/)
    .map((line) => line.slice(line.lastIndexOf('\0') + 1))

describe('spinner (needs script)', () => {
  test('chat --stream shows a spinner until the first text arrives, also after the response headers', async () => {
    const { screen } = await stream(sseHead, [['waiting for the answer ·', textDelta('Done.') + ended]])
    expect(linesOf(screen)).toContain('Done.')
    expect(screen.slice(screen.indexOf('Done.'))).not.toContain('waiting')
  })

  test('chat --stream shows a spinner until a table is complete', async () => {
    const { screen } = await stream(sseHead + textDelta('Look:\n\n'), [
      ['Look:', textDelta('|a|b|\n|-|-|\n|1|2|\n')],
      ['waiting for the rest', textDelta('|33|44|\n\nThat is all.') + ended],
    ])
    const lines = linesOf(screen)
    const start = lines.indexOf('Look:')
    expect(lines.slice(start, start + 7)).toEqual(['Look:', '', 'a  │ b', '───┼───', '1  │ 2', '33 │ 44', ''])
    expect(lines).toContain('That is all.')
  })

  const toFile = ['-o answer.txt', '--schema schema.json']
  test.each(toFile)('chat --stream %s shows a spinner until the answer is complete', async (flags) => {
    const steps: Step[] = [['waiting for the answer ·', textDelta('1}') + ended]]
    const { screen, code } = await stream(sseHead + textDelta('{"a":'), steps, `--stream ${flags}`)
    expect(code).toBe(0)
    expect(linesOf(screen).join('\n')).not.toContain('waiting')
  })
})
