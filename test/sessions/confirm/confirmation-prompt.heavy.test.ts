import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { credentials, temporaryFolder } from '../../harness/run.ts'
import { envFor, response, serve } from '../../harness/server.ts'
import { runAtTerminal } from '../../harness/typing.ts'

/** Prompts a person about two tool uses. Returns the sent events. */
async function confirmTwo(
  command: string,
  answers: (cwd: string) => Parameters<typeof runAtTerminal>[2],
): Promise<{ code: unknown; screen: string; events: { result: string; deny_message?: string }[] }> {
  const cwd = temporaryFolder()
  const waiting = ['t1', 't2'].map((id) => ({ id, type: 'agent.tool_use', name: 'bash', input: {} }))
  const idle = { id: 'idle', type: 'session.status_idle', stop_reason: { event_ids: ['t1', 't2'] } }
  const data = [...waiting, idle]
  let posted = '{"events":[]}'
  const server = await serve((socket, request) => {
    const isPost = request.startsWith('POST')
    if (isPost) posted = request.slice(request.indexOf('\r\n\r\n'))
    socket.end(response(JSON.stringify({ data: isPost ? [] : data })))
  })
  const script = 'NO_COLOR=1 exec "$NODE" "$PARLEY" events confirm -s s --pending $MORE > out'
  writeFileSync(join(cwd, 'confirm'), script)
  const env = { ...credentials, ...envFor(server) }
  const { code, screen } = await runAtTerminal(command, cwd, answers(cwd), env)
  await server.close()
  return { code, screen, events: JSON.parse(posted).events }
}

const typing = (first: string, second: string) => (): [string, string][] => [
  ['(t1)? [y/n/s/q] ', first],
  ['(t2)? [y/n/s/q] ', second],
]

test('lines that are typed before a prompt do not answer it (needs script)', async () => {
  const { events } = await confirmTwo('sh confirm', typing('y\ny\ny\n', 'n\n'))
  expect(events.map(({ result }) => result)).toEqual(['allow', 'deny'])
})

test('Q12: events confirm sends all lines of a pasted reason, and none answers the next prompt (needs script)', async () => {
  const reason = 'n \x1b[200~not here\rnor there\ry\r\x1b[201~\r'
  const { events } = await confirmTwo('sh confirm', typing(reason, '\x1b[200~y\r\x1b[201~\r'))
  const denial = { result: 'deny', deny_message: 'not here\nnor there\ny' }
  expect(events).toMatchObject([denial, { result: 'allow' }])
})

test('V26: after Ctrl-D at a prompt, events confirm sends only the earlier replies (needs script)', async () => {
  const { events } = await confirmTwo('sh confirm', typing('y\r', '\x04y\r'))
  expect(events).toMatchObject([{ tool_use_id: 't1', result: 'allow' }])
})

test('V40: Ctrl-Z at a prompt suspends parley, and after fg the prompt is empty (needs bash, script)', async () => {
  const { events, screen } = await confirmTwo('PS1=[shell] exec bash --norc --noprofile -i', () => [
    ['[shell]', 'sh confirm\r'],
    ['(t1)? [y/n/s/q] ', 'n no\x1a'],
    ['Stopped', 'fg\r'],
    ['(t1)? [y/n/s/q] ', 'n way\r'],
    ['(t2)? [y/n/s/q] ', 'y\r'],
    ['[shell]', 'exit\r'],
  ])
  expect(events, screen).toMatchObject([{ result: 'deny', deny_message: 'way' }, { result: 'allow' }])
})

test('Q10: keys that are typed before a prompt, without Enter, do not answer it (needs script)', async () => {
  const { events } = await confirmTwo('sh confirm', () => [
    ['(t1)? [y/n/s/q] ', 'n\ny'],
    ['(t2)? [y/n/s/q] ', '\n'],
    ['(t2)? [y/n/s/q] ', 'n\n'],
  ])
  expect(events.map(({ result }) => result)).toEqual(['deny', 'deny'])
})
