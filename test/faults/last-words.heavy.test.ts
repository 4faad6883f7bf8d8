import type { Socket } from 'node:net'
import { response, type Script } from '../harness/server.ts'
import { answering, delta, event, sseHead } from './answers.ts'
import { events, faultsOnce, type Row, stream } from './rows.ts'

/** What a run says last when Ctrl-C ends it there. */
const dying = (at: NonNullable<Row['signal']>['at'], said: string): Partial<Row> & Pick<Row, 'code'> => ({
  signal: { name: 'SIGINT', at },
  code: 'SIGINT',
  err: [`parley: interrupted${said}\n`],
})

const mayBeAccepted =
  "the event may have been accepted: look with 'parley events list -s sesn_1' before sending again"

const list = (...data: object[]) => response(JSON.stringify({ data }))
const message = { id: 'sent_1', type: 'user.message' }
const idle = { id: 'i', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
const thinking = { id: 't', type: 'agent.thinking' }
const thought = 't\tagent.thinking\t\t\n'

/** A session that lists these events when it is asked again, and whose stream brings others once one was sent. */
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

const again = (argv: string) => `to follow it again: parley events follow ${argv}`

faultsOnce('G: last words', [
  {
    ...dying('request', ''),
    name: 'G21: a list that is waited for takes nothing away',
    argv: ['events', 'list'],
    script: () => {},
    reqs: 1,
  },
  {
    ...dying('err', ''),
    name: 'G21: a list that is to be asked for again',
    argv: ['events', 'list'],
    script: answering(response('{}', '503 Oops', ['retry-after: 30'])),
    reqs: 1,
  },
  {
    ...dying('request', ''),
    name: 'G22: a session that did not answer yet is not said to go on',
    argv: ['events', 'follow'],
    script: () => {},
    reqs: 1,
  },
  {
    ...dying('out', `: the session goes on; ${again("-s 'a b'")}`),
    name: 'G23: following a session',
    argv: ['events', 'follow', '-s', 'a b'],
    script: session([thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  },
  {
    ...dying('out', `: the session is idle; to follow it again: parley events follow --stay --session=-x`),
    name: 'G24: following a session that is idle',
    argv: ['events', 'follow', '--session=-x', '--stay'],
    script: session([idle]),
    out: 'i\tsession.status_idle\t\tend_turn\n',
    reqs: 3,
    conns: 3,
  },
  {
    ...dying('out', `: the event was accepted; the session goes on; ${again('-s sesn_1')}`),
    name: 'G25: following what was sent',
    argv: [...events, '--follow'],
    script: session([], [message, thinking]),
    out: thought,
    reqs: 3,
    conns: 3,
  },
  {
    ...dying('request', ': nothing was sent'),
    name: 'G26: before anything is sent to a session that is to be followed',
    argv: [...events, '--follow'],
    script: () => {},
    reqs: 1,
  },
  {
    ...dying('request', `: ${mayBeAccepted}`),
    name: 'G27: a status without a receipt claims nothing',
    argv: events,
    script: (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"da'),
    reqs: 1,
  },
  {
    ...dying('request', `: ${mayBeAccepted}`),
    name: 'G32: a confirmation that was sent',
    argv: ['events', 'confirm', '-s', 'sesn_1', 'toolu_1', '--allow'],
    script: () => {},
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
      name: `G33: ${argv[0]} with --errors json`,
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
    ...dying('err', ': nothing was changed'),
    name: 'G28: a setting that is waited for',
    argv: ['config', 'set', 'accessToken'],
    stdin: { open: true },
  },
  {
    ...dying(
      'file',
      ': the received data is saved as a^[[31m.txt.part; the answer was cut off; t^[[31m ::x was not created',
    ),
    name: 'G29: files whose names could control a terminal, or what reads stderr',
    argv: [...stream, '-o', 'a\x1b[31m.txt', '--thread', 't\x1b[31m\n::x'],
    script: answering(sseHead + delta('begun')),
    reqs: 1,
    files: ['cwd/a\x1b[31m.txt.part'],
  },
])
