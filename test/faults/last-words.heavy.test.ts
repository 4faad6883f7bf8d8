import type { Socket } from 'node:net'
import { response, type Script } from '../harness/server.ts'
import { respondWith, sseEvent, sseHead, textDelta } from './answers.ts'
import { endsBySigint, row, sendArgv, streamArgv, testFaultsOnce } from './rows.ts'

const checkFirst = "check with 'parley events list -s sesn_1' before sending again"

const list = (...data: object[]) => response(JSON.stringify({ data }))
const message = { id: 'sent_1', type: 'user.message' }
const idle = { id: 'i', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
const thinking = { id: 't', type: 'agent.thinking' }
const thought = 't\tagent.thinking\t\t\n'

/**
 * Simulates a session. The first list is empty, later lists contain `listed`. The stream sends `live` once a
 * message is posted.
 */
function simulateSession(listed: object[], live: object[] = []): Script {
  let open: Socket | undefined
  let lists = 0
  return (socket, request) => {
    if (/^GET \S+\/stream /.test(request)) {
      open = socket
      socket.write(sseHead)
    } else if (request.startsWith('POST')) {
      socket.write(list(message))
      open?.write(live.map((each) => sseEvent(each, 'message')).join(''))
    } else socket.write(list(...(lists++ > 0 ? listed : [])))
  }
}

const followCommand = (argv: string) => `to follow it again: parley events follow ${argv}`
const followSent = followCommand('-s sesn_1 --history')

testFaultsOnce('G: parley reports after SIGINT whether something was sent', [
  row('G21: parley prints only "interrupted" if SIGINT ends the wait for a list', {
    ...endsBySigint('request', ''),
    argv: ['events', 'list'],
    script: () => {},
  }),
  row('G23: parley prints the command that resumes following if SIGINT ends events follow', {
    ...endsBySigint('out', `: the session may continue; ${followCommand("-s 'a b'")}`),
    argv: ['events', 'follow', '-s', 'a b'],
    script: simulateSession([thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  }),
  row('G24: parley reports an idle session if SIGINT ends events follow --stay', {
    ...endsBySigint('out', `: the session is idle; ${followCommand('--stay --session=-x')}`),
    argv: ['events', 'follow', '--session=-x', '--stay'],
    script: simulateSession([idle]),
    out: 'i\tsession.status_idle\t\tend_turn\n',
    reqs: 3,
    conns: 3,
  }),
  row('G25: parley reports the accepted event and the follow command if SIGINT ends events send --follow', {
    ...endsBySigint('out', `: the event was accepted; the session may continue; ${followSent}`),
    argv: [...sendArgv, '--follow'],
    script: simulateSession([], [message, thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  }),
  row(
    'G26: parley reports that nothing was sent if SIGINT ends events send --follow before it sends the event',
    { ...endsBySigint('request', ': nothing was sent'), argv: [...sendArgv, '--follow'], script: () => {} },
  ),
  row('G27: parley reports that the event may have been accepted if SIGINT arrives during the response', {
    ...endsBySigint('request', `: the event may have been accepted: ${checkFirst}`),
    argv: sendArgv,
    script: (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"da'),
  }),
  ...(
    [
      [
        sendArgv,
        { sent: 'unknown', safeToRetry: false, retry: 'look-first', attempts: 1, session: 'sesn_1' },
      ],
      [['chat', 'hi'], { sent: 'unknown', safeToRetry: false, retry: 'later', attempts: 1 }],
    ] as const
  ).map(([argv, fields]) =>
    row(
      `G33: parley ${argv[0]} --errors json prints a JSON error with sent and retry fields if SIGINT ends the run`,
      { signal: { name: 'SIGINT', at: 'request' }, argv: [...argv, '--errors', 'json'], script: () => {} },
      {
        code: 'SIGINT',
        err: ['{"error":{"format":1,"kind":"signal","exit":130,', `",${JSON.stringify(fields).slice(1)}}\n`],
      },
    ),
  ),
  row('G29: parley escapes control characters of file names in the message after SIGINT', {
    ...endsBySigint(
      'file',
      ': the answer was cut off; the received data is saved as a^[[31m.txt.part; t^[[31m ::x was not created',
    ),
    argv: [...streamArgv, '-o', 'a\x1b[31m.txt', '--thread', 't\x1b[31m\n::x'],
    script: respondWith(sseHead + textDelta('begun')),
    files: ['cwd/a\x1b[31m.txt.part'],
  }),
])
