import { response, type Script } from '../harness/server.ts'
import { answering, delta, ok, okText, receipt, receiptText, sseHead } from './answers.ts'
import { chat, chatAndEvents, events, faultsInside, type Row, stream } from './rows.ts'

const refusal = (status: string, ...headers: string[]) => response('{"error":"no"}', status, headers)
const slow = (...headers: string[]) => refusal('429 Too Many Requests', ...headers)
const done = response('{"content":"ok","data":[]}')
const once = (first: Uint8Array): Script => answering(first, done)

/** The three forms of an HTTP date. */
const dates: Record<string, (date: Date) => string> = {
  'IMF-fixdate': (date) => date.toUTCString(),
  'RFC 850': (date) => {
    const [, , day, month, year, time] = /^(\w+), (\d+) (\w+) \d\d(\d+) (\S+)/.exec(date.toUTCString()) ?? []
    const name = date.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
    return `${name}, ${day}-${month}-${year} ${time} GMT`
  },
  asctime: (date) => {
    const [, name, day, month, year, time] = /^(\w+), (\d+) (\w+) (\d+) (\S+)/.exec(date.toUTCString()) ?? []
    return `${name} ${month} ${day?.replace(/^0/, ' ')} ${time} ${year}`
  },
}

const retried = { code: 0, reqs: 2, err: [/^parley: .*; trying again in .*\n/] } satisfies Partial<Row>
const final = (status: string, code: number, ...headers: string[]) => ({
  script: answering(refusal(status, ...headers)),
  code,
  reqs: 1,
})

faultsInside('T: retry rules', [
  ...chatAndEvents({
    ...retried,
    name: 'T01: parley waits for the time of Retry-After after a 429',
    script: once(slow('retry-after: 1')),
    flags: ['-v'],
    err: ['trying again in 1.0 s'],
    atLeast: 1,
  }),
  ...Object.entries(dates).map(
    ([form, write]): Row => ({
      ...retried,
      name: `T02: parley waits until a Retry-After date in the form ${form}`,
      argv: events,
      script: (socket, _, count) => {
        const date = write(new Date(Date.now() + 2500))
        socket.write(count === 1 ? slow(`retry-after: ${date}`) : receipt)
      },
      out: receiptText,
      atLeast: 1.4,
    }),
  ),
  ...['0', 'Sun, 06 Nov 1994 08:49:37 GMT'].map(
    (value): Row => ({
      ...retried,
      name: `T03: parley waits the default time if Retry-After is '${value}'`,
      script: once(slow(`retry-after: ${value}`)),
      out: 'ok\n',
      err: [/trying again in 0\.[345] s/],
      atLeast: 0.25,
    }),
  ),
  ...['retry-after:  1 \t', 'retry-after-ms:\t1000  '].map(
    (header): Row => ({
      ...retried,
      name: `T03: parley ignores blanks around the value of '${header}'`,
      script: once(slow(header)),
      out: 'ok\n',
      err: ['trying again in 1.0 s'],
      atLeast: 1,
    }),
  ),
  {
    ...retried,
    name: 'T02: parley compares a Retry-After date with the Date header of the service',
    script: once(slow('date: Sun, 06 Nov 1994 08:49:37 GMT', 'retry-after: Sun, 06 Nov 1994 08:49:39 GMT')),
    out: 'ok\n',
    err: ['trying again in 2.0 s'],
    atLeast: 2,
  },
  ...chatAndEvents({
    name: 'T05: parley exits with 6 at once if Retry-After exceeds what a timer can wait',
    ...final('429 No', 6, 'retry-after: 99999999999'),
    err: ['99999999999 s'],
  }),
  ...chatAndEvents({
    name: 'T06: parley exits with 6 at once and reports retryAfter if Retry-After exceeds the maximum wait',
    ...final('429 No', 6, 'retry-after: 3600'),
    flags: ['--errors', 'json'],
    err: ['"retryAfter":3600', '"sent":"yes"', '"safeToRetry":true', '"attempts":1'],
  }),
  ...chatAndEvents({
    ...retried,
    name: 'T07: parley waits the default time after a 429 without Retry-After',
    script: once(slow()),
    atLeast: 0.25,
  }),
  ...chatAndEvents({
    name: 'T08: parley exits with 6 after the last retry if every response is a 429',
    script: answering(slow()),
    flags: ['--retries', '1'],
    code: 6,
    reqs: 2,
    err: ['the service says: no'],
  }),
  ...chatAndEvents({
    ...retried,
    name: 'T09: parley retries a 503 with Retry-After',
    script: once(refusal('503 Busy', 'retry-after: 1')),
    atLeast: 1,
  }),
  {
    ...retried,
    name: 'T10: parley retries a 503 without Retry-After (chat)',
    script: once(refusal('503 Busy')),
    out: 'ok\n',
  },
  {
    name: 'T10: parley does not retry a 503 without Retry-After (events)',
    argv: events,
    ...final('503 Busy', 7),
    err: ['may have been accepted'],
  },
  ...[500, 529].flatMap((status): Row[] => [
    {
      ...retried,
      name: `T11: parley retries a ${status} (chat)`,
      script: once(refusal(`${status} Oh`)),
      out: 'ok\n',
    },
    {
      name: `T11: parley does not retry a ${status} (events)`,
      argv: events,
      ...final(`${status} Oh`, 7),
      err: ['may have been accepted'],
    },
  ]),
  { name: 'T11: does not retry a 599 (chat)', ...final('599 Oh', 7) },

  {
    ...retried,
    name: 'T12: retries a 408 (chat)',
    script: once(refusal('408 Slow')),
    out: 'ok\n',
  },
  {
    name: 'T12: does not retry a 408 (events)',
    argv: events,
    ...final('408 No', 7),
    err: ['may have been accepted'],
  },
  { name: 'T12: parley exits with 4 on a 409 (events)', argv: events, ...final('409 No', 4) },
  ...chatAndEvents({
    name: 'T13: exits with 3 on a 401 and names the source of the secret',
    ...final('401 No', 3),
    err: [/PARLEY_(ACCESS_TOKEN|API_KEY)/],
  }),
  { name: 'T13: parley exits with 5 on a 402', ...final('402 Pay', 5) },
  {
    name: 'T14: parley does not retry a 500 with x-should-retry: true (events)',
    argv: events,
    ...final('500 Oh', 7, 'x-should-retry: true'),
  },
  ...chatAndEvents({
    name: 'T14: parley does not retry a 429 with x-should-retry: false',
    ...final('429 No', 6, 'x-should-retry: false'),
  }),
  ...chatAndEvents({
    ...retried,
    name: 'T16: parley sends the same bytes in every attempt',
    script: once(slow()),
    check: ({ server }) => {
      const [first, second] = server.requests
      if (first !== second) throw new Error(`${first}\nis not\n${second}`)
    },
  }),
  {
    ...retried,
    name: 'T17: parley sends an event from stdin again after a 429',
    argv: ['events', 'send'],
    stdin: '{"type":"user.message","content":[{"type":"text","text":"once"}]}\n',
    script: answering(slow(), receipt),
    out: receiptText,
    check: ({ server }) => {
      for (const request of server.requests) {
        if (
          !request.endsWith('{"events":[{"type":"user.message","content":[{"type":"text","text":"once"}]}]}')
        )
          throw new Error(request)
      }
    },
  },
  ...chatAndEvents({
    name: 'T18: parley exits with 6 before a wait that would pass the deadline',
    script: answering(slow('retry-after: 1')),
    flags: ['--deadline', '2', '--retries', '9'],
    code: 6,
    reqs: 2,
    err: ['past the deadline'],
  }),
  ...chatAndEvents({
    name: 'T19: parley reports that nothing was accepted if SIGINT ends the wait after a 429',
    script: answering(slow('retry-after: 30')),
    signal: { name: 'SIGINT', at: 'err' },
    code: 'SIGINT',
    reqs: 1,
    err: ['parley: interrupted: nothing was accepted'],
  }),
  ...chatAndEvents({
    name: 'T20: parley sends one request with --retries 0',
    script: answering(slow()),
    flags: ['--retries', '0'],
    code: 6,
    reqs: 1,
  }),
  {
    name: 'T21: parley does not restart a stream that breaks after its first text',
    argv: stream,
    script: (socket) => void socket.end(sseHead + delta('begun')),
    code: 8,
    out: 'begun\n',
    reqs: 1,
    err: ['the stream ended early'],
  },
  {
    name: 'T23: parley retries a list after a 500 and after RST',
    argv: ['events', 'list'],
    script: (socket, _, count) => {
      if (count === 1) socket.write(refusal('500 Oh'))
      else if (count === 2) socket.resetAndDestroy()
      else socket.write(receipt)
    },
    code: 0,
    out: receiptText,
    reqs: 3,
    err: [/^(parley: .*trying again.*\n){2}$/],
  },
  {
    name: 'T25: parley exits with 4 and prints the reason if a tool use is confirmed a second time',
    argv: ['events', 'confirm', 'toolu_1', '--allow'],
    script: answering(response('{"error":{"message":"it was answered already"}}', '409 Conflict')),
    code: 4,
    reqs: 1,
    err: ['the service says: it was answered already'],
  },
  {
    ...retried,
    name: 'T26: parley prints no notices of retries with --quiet',
    argv: [...chat, '--quiet'],
    script: answering(slow(), ok),
    out: okText,
    err: [/^$/],
  },
])
