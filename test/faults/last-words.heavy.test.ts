import type { Socket } from 'node:net'
import { response, type Script } from '../harness/server.ts'
import { answering, delta, event, sseHead } from './answers.ts'
import { events, faultsOnce, type Row, stream } from './rows.ts'

/** Returns the part of a row that SIGINT ends in this phase with this message. */
const endsBySigint = (
  at: NonNullable<Row['signal']>['at'],
  message: string,
): Partial<Row> & Pick<Row, 'code'> => ({
  signal: { name: 'SIGINT', at },
  code: 'SIGINT',
  err: [`parley: interrupted${message}\n`],
})

const mayBeAccepted =
  "the event may have been accepted: check with 'parley events list -s sesn_1' before sending again"

const list = (...data: object[]) => response(JSON.stringify({ data }))
const message = { id: 'sent_1', type: 'user.message' }
const idle = { id: 'i', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
const thinking = { id: 't', type: 'agent.thinking' }
const thought = 't\tagent.thinking\t\t\n'

/**
 * Simulates a session whose first list is empty and whose later lists contain `listed`. Its stream sends
 * `live` after a message was sent.
 */
function session(listed: object[], live: object[] = []): Script {
  let open: Socket | undefined
  let lists = 0
  return (socket, request) => {
    if (/^GET \S+\/stream /.test(request)) {
      open = socket
      socket.write(sseHead)
    } else if (request.startsWith('POST')) {
      socket.write(list(message))
      open?.write(live.map((each) => event(each, 'message')).join(''))
    } else socket.write(list(...(lists++ > 0 ? listed : [])))
  }
}

const followCommand = (argv: string) => `to follow it again: parley events follow ${argv}`

faultsOnce('G: the last message after SIGINT', [
  {
    ...endsBySigint('request', ''),
    name: 'G21: parley prints only "interrupted" if SIGINT ends the wait for a list',
    argv: ['events', 'list'],
    script: () => {},
    reqs: 1,
  },
  {
    ...endsBySigint('out', `: the session continues; ${followCommand("-s 'a b'")}`),
    name: 'G23: parley prints the command that follows the session again if SIGINT ends events follow',
    argv: ['events', 'follow', '-s', 'a b'],
    script: session([thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  },
  {
    ...endsBySigint(
      'out',
      `: the session is idle; to follow it again: parley events follow --stay --session=-x`,
    ),
    name: 'G24: parley reports an idle session if SIGINT ends events follow --stay',
    argv: ['events', 'follow', '--session=-x', '--stay'],
    script: session([idle]),
    out: 'i\tsession.status_idle\t\tend_turn\n',
    reqs: 3,
    conns: 3,
  },
  {
    ...endsBySigint(
      'out',
      `: the event was accepted; the session continues; ${followCommand('-s sesn_1 --history')}`,
    ),
    name: 'G25: parley reports the accepted event and the follow command if SIGINT ends events send --follow',
    argv: [...events, '--follow'],
    script: session([], [message, thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  },
  {
    ...endsBySigint('request', ': nothing was sent'),
    name: 'G26: parley reports that nothing was sent if SIGINT ends events send --follow before it sends the event',
    argv: [...events, '--follow'],
    script: () => {},
    reqs: 1,
  },
  {
    ...endsBySigint('request', `: ${mayBeAccepted}`),
    name: 'G27: parley reports that the request may have arrived if SIGINT arrives during the response',
    argv: events,
    script: (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"da'),
    reqs: 1,
  },
  ...(
    [
      [events, { sent: 'unknown', safeToRetry: false, retry: 'look-first' }],
      [['chat', 'hi'], { sent: 'unknown', safeToRetry: false, retry: 'later' }],
    ] as const
  ).map(
    ([argv, fields]): Row => ({
      signal: { name: 'SIGINT', at: 'request' },
      code: 'SIGINT',
      name: `G33: parley prints the delivery state as JSON if SIGINT ends ${argv[0]} with --errors json`,
      argv: [...argv, '--errors', 'json'],
      script: () => {},
      reqs: 1,
      err: [
        new RegExp(
          `^\\{"error":\\{"format":1,"kind":"signal","exit":130,"message":"interrupted: [^"]+",${JSON.stringify(fields).slice(1)}\\}\n$`,
        ),
      ],
    }),
  ),
  {
    ...endsBySigint('err', ': nothing was changed'),
    name: 'G28: parley reports that nothing was changed if SIGINT ends config set',
    argv: ['config', 'set', 'accessToken'],
    stdin: { open: true },
  },
  {
    ...endsBySigint(
      'file',
      ': the answer was cut off; the received data is saved as a^[[31m.txt.part; t^[[31m ::x was not created',
    ),
    name: 'G29: parley escapes file names in the message after SIGINT',
    argv: [...stream, '-o', 'a\x1b[31m.txt', '--thread', 't\x1b[31m\n::x'],
    script: answering(sseHead + delta('begun')),
    reqs: 1,
    files: ['cwd/a\x1b[31m.txt.part'],
  },
])
