import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { programAsNobody } from '../harness/process.ts'
import { answering, ok, okText, receipt, receiptText } from './answers.ts'
import { chat, events, faults, faultsInside, type Row } from './rows.ts'
import { onTerminal, quote } from './terminal.ts'

const good = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const send = ['events', 'send']
const nothing = { code: 2, err: ['parley: '] } satisfies Partial<Row>
const event = (text: string) => `{"type":"user.message","content":[{"type":"text","text":"${text}"}]}`
/** A pipe on which nothing comes until parley says that it waits for it, and then its end. */
const hinted = {
  stdin: { open: true },
  during: async ({ child, err }) => {
    while (err() === '' && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 10))
    child.stdin?.end()
  },
  err: ['waiting for stdin (--no-stdin skips it)'],
} satisfies Partial<Row>

const asked = (text: string): Pick<Row, 'check'> => ({
  check: ({ server }) => {
    const { contents } = JSON.parse(server.requests[0]?.split('\r\n\r\n')[1] ?? '')
    const said = contents[0].parts.map((part: { text: string }) => part.text).join('|')
    if (said !== text) throw new Error(`asked: ${JSON.stringify(said).slice(0, 200)}`)
  },
})

const asSent = (text: string): Pick<Row, 'check'> => ({
  check: ({ server }) => expect(server.requests[0]?.split('\r\n\r\n')[1]).toBe(text),
})

faults('P: stdin and event input', [
  ...[['chat'], send].flatMap((argv): Row[] => [
    { ...nothing, name: `P01: an empty pipe (${argv[0]})`, argv, stdin: '', err: ['empty'] },
    { ...nothing, name: `P01: blanks only (${argv[0]})`, argv, stdin: ' \n\t\n', err: ['empty'] },
    { ...nothing, name: `P01: /dev/null (${argv[0]})`, argv, err: ['empty'] },
    { ...nothing, name: `P02: closed (${argv[0]})`, shell: `parley ${argv.join(' ')} <&-`, err: ['empty'] },
    {
      name: `P03: a terminal (${argv[0]})`,
      shell: onTerminal(`NO_COLOR=1 parley ${argv.join(' ')} 2>&1`),
      code: 2,
      out: (out) => /^parley: no (prompt|events): give .*\r\n$/.test(out.toString()),
    },
    {
      ...nothing,
      name: `P08: bytes that are no UTF-8 (${argv[0]})`,
      argv,
      stdin: Buffer.from('ab\xff', 'latin1'),
      err: ['byte 2'],
    },
    {
      ...nothing,
      name: `P08: UTF-16 (${argv[0]})`,
      argv,
      stdin: Buffer.from('\ufeffab', 'utf16le'),
      err: ['byte 0'],
    },
    {
      name: `P11: a folder (${argv[0]})`,
      shell: `parley ${argv.join(' ')} </`,
      code: 11,
      err: ['it is a folder'],
    },
  ]),
  {
    ...good,
    name: 'P04: a slow producer',
    shell: '(sleep 1; echo one; sleep 1; echo two) | parley chat',
    ...asked('one\ntwo\n'),
    atLeast: 2,
  },
  {
    name: 'P05: an idle pipe, --no-stdin (events)',
    either: 'it ends, which a run with nothing on stdin does, too',
    argv: [...events, '--no-stdin'],
    stdin: { open: true },
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
  },
  {
    ...good,
    name: 'P05: an idle pipe, --no-stdin (chat)',
    argv: [...chat, '--no-stdin'],
    stdin: { open: true },
  },
  {
    ...good,
    name: 'P05: an idle pipe (chat) gets a hint',
    ...hinted,
  },
  {
    ...hinted,
    ...nothing,
    name: 'P05: an idle pipe that - asks for',
    argv: ['chat', '-'],
    err: [/^parley: waiting for stdin\n/],
  },
  { ...good, name: 'P09: a byte order mark', argv: ['chat'], stdin: '\ufeffhi', ...asked('hi') },
  {
    ...good,
    name: 'P10: NUL, CRLF, no final newline',
    argv: ['chat'],
    stdin: 'a\0b\r\nc',
    ...asked('a\0b\r\nc'),
  },
  {
    ...nothing,
    name: 'P13: NDJSON with one bad line',
    argv: send,
    stdin: `${event('a')}\n{"type":\n${event('b')}\n`,
    err: ['2'],
  },
  {
    ...nothing,
    name: 'P14: an unknown event type',
    argv: [...send, '--event', '{"type":"user.strange"}'],
    err: ['type'],
  },
  {
    name: 'P14: an unknown event type, with --no-validate',
    argv: [...send, '--event', '{"type":"user.strange"}', '--no-validate'],
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
    ...asSent('{"events":[{"type":"user.strange"}]}'),
  },
  {
    name: 'P15: @path that is missing',
    argv: [...send, '--message', '@none'],
    code: 11,
    err: ['none: no such file'],
  },
  {
    name: 'P15: @path that is a folder',
    argv: [...send, '--message', '@.'],
    code: 11,
    err: ['it is a folder'],
  },
  {
    name: 'P15: @path that is a FIFO',
    shell: 'mkfifo pipe; (echo from the pipe > pipe &); parley events send --message @pipe',
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
    check: ({ server }) => {
      if (!server.requests[0]?.includes('from the pipe')) throw new Error('it was not read')
    },
  },
  {
    name: 'P15: @path that cannot be read (needs another user)',
    shell: `chmod 0 secret; ${programAsNobody().map(quote).join(' ')} events send --message @secret
      code=$?; chmod 600 secret; exit $code`,
    env: { NODE_OPTIONS: '' },
    prepare: (folder) => {
      writeFileSync(join(folder, 'cwd/secret'), 'x')
      execFileSync('chmod', ['-R', 'go+rX', folder])
    },
    code: 11,
    files: ['cwd/secret'],
    err: ['secret: permission denied'],
  },
  ...[
    ['-i', '-', '-'],
    ['-', '-'],
  ].map(
    (words): Row => ({
      ...nothing,
      name: `P16: two readers: ${words.join(' ')}`,
      argv: ['chat', ...words],
      stdin: 'x',
    }),
  ),
  {
    ...nothing,
    name: 'P16: a reader with --no-stdin',
    argv: ['chat', '-', '--no-stdin'],
    stdin: 'x',
    err: ['--no-stdin forbids'],
  },
])

const messageOf = (...texts: string[]) =>
  JSON.stringify({
    events: [{ type: 'user.message', content: texts.map((text) => ({ type: 'text', text })) }],
  })
const received = { script: answering(receipt), code: 0, out: receiptText, reqs: 1 } satisfies Partial<Row>

faults('P: piped text beside words, deadlines and sizes', [
  {
    ...received,
    name: 'P20: words and a pipe are two blocks of one message',
    argv: events,
    stdin: 'diff\n',
    ...asSent(messageOf('hi', 'diff\n')),
  },
  {
    ...received,
    name: 'P20: an empty pipe adds nothing',
    either: 'nothing is what it adds',
    argv: events,
    stdin: '',
    ...asSent(messageOf('hi')),
  },
  {
    ...received,
    name: 'P20: a file on stdin',
    shell: 'printf diff > f; parley events send hi < f',
    files: ['cwd/f'],
    ...asSent(messageOf('hi', 'diff')),
  },
  {
    ...received,
    name: 'P20: the word - takes the pipe',
    argv: [...send, 'see', '-'],
    stdin: 'diff\n',
    ...asSent(messageOf('see diff')),
  },
  ...[
    ['--tool-result', 't=@-'],
    ['--system', '@-'],
    ['-H', '@-'],
  ].map(
    (flag): Row => ({
      ...received,
      name: `P20: ${flag.join(' ')} takes the pipe`,
      argv: [...events, ...flag],
      stdin: 'x-own: diff',
      check: ({ server }) => expect(server.requests[0]?.split('diff')).toHaveLength(2),
    }),
  ),
  {
    ...received,
    name: 'P20: a terminal is never read',
    shell: onTerminal('NO_COLOR=1 parley events send hi --ids 2>&1'),
    out: 'sevt_1\r\n',
    ...asSent(messageOf('hi')),
  },
  {
    ...received,
    name: 'P20: an idle pipe gets a hint',
    argv: events,
    ...hinted,
  },
  ...[
    ['chat'],
    chat,
    ['chat', '-i', '-'],
    ['chat', 'hi', '-H', '@-'],
    ['image', '-m', 'painter'],
    send,
    events,
    ['events', 'confirm', '--allow'],
  ].map(
    (argv): Row => ({
      name: `P21: the deadline ends the wait for stdin: ${argv.join(' ')}`,
      argv: [...argv, '--deadline', '1', '-q'],
      stdin: { open: true },
      code: 9,
      err: [/^parley: the deadline passed while stdin was read\n {2}nothing was sent\n$/],
      atLeast: 0.9,
    }),
  ),
  {
    name: 'P21: what stdin took is taken from the deadline',
    shell: '(sleep 2; echo hi) | parley chat --deadline 5',
    script: () => {},
    code: 10,
    reqs: 1,
    err: ['the deadline passed'],
    atLeast: 4.9,
  },
  ...[['chat'], send].map(
    (argv): Row => ({
      ...nothing,
      name: `P24: 5,000 lists in each other (${argv[0]})`,
      argv: [...argv, '-i', '-'],
      stdin: `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      err: ['stdin: not valid JSON: line 1, column 1005: nested more than 1000 deep'],
    }),
  ),
])

const isolated = '\u2066'
const ids: [id: string, value: string, path?: string][] = [
  ['L01', '..'],
  ['L02', '.'],
  ['L02', '%2e%2e'],
  ['L02', '%2E.'],
  ['L02', ' '],
  ['L02', ' .. '],
  ['L03', 'a/b', 'a%2Fb'],
  ['L03', 'a%2fb', 'a%252fb'],
  ['L03', 'a\\b', 'a%5Cb'],
  ['L04', 'a?x=1', 'a%3Fx%3D1'],
  ['L04', 'a#f', 'a%23f'],
  ['L04', 'a;p', 'a%3Bp'],
  ['L05', 'a\rb'],
  ['L05', 'a\nb'],
  ['L05', 'a\tb'],
  ['L05', 'a\u0085b'],
  ['L06', 'é', '%C3%A9'],
  ['L06', '🦜', '%F0%9F%A6%9C'],
  ['L06', `a${isolated}b`, 'a%E2%81%A6b'],
  ['L08', 'x'.repeat(10_240)],
  ['L08', '-x', '-x'],
]

const isIn = (path: string) => ({
  check: ({ server }: { server: { requests: string[] } }) => {
    const target = server.requests[0]?.split(' ')[1]
    if (!target?.includes(path)) throw new Error(`the target was ${target}`)
  },
})

faultsInside('L: addresses and ids', [
  ...ids.flatMap(([id, value, path]): Row[] => {
    const shown = JSON.stringify(value).slice(0, 20)
    const refused = { code: 2, err: ['parley: '] } satisfies Partial<Row>
    if (path === undefined) {
      return [
        { ...refused, name: `${id} session ${shown}`, argv: [...events, `--session=${value}`] },
        { ...refused, name: `L09: model ${shown}`, argv: [...chat, `--model=${value}`] },
      ]
    }
    return [
      {
        name: `${id} session ${shown}`,
        argv: [...events, `--session=${value}`],
        script: answering(receipt),
        code: 0,
        out: receiptText,
        reqs: 1,
        ...isIn(`/v1/sessions/${path}/events`),
      },
      {
        ...good,
        name: `L09: model ${shown}`,
        argv: [...chat, `--model=${value}`],
        ...isIn(`/models/${path}:gen`),
      },
    ]
  }),
  { name: 'L02: an empty session', argv: [...events, '--session='], code: 2, env: { PARLEY_SESSION: '' } },
  ...[
    'http://127.0.0.1:1/?a=b',
    'http://127.0.0.1:1/#f',
    'http://user:secretword@127.0.0.1:1/',
    'http://127.0.0.1:1/?',
    '127.0.0.1:1',
    'ftp://127.0.0.1/',
    'file:///etc/passwd',
    'unix:/run/x',
    'http://a b/',
    'http://127.0.0.1:1/\nx',
    'http://',
    'http://127.0.0.1:0',
    'http://127.0.0.1:99999',
    'http://[fe80::1%25eth0]:1/',
    'gateway.example',
  ].flatMap((address) =>
    [chat, events].map(
      (argv): Row => ({
        name: `L11, L12: the address ${JSON.stringify(address)} (${argv[0]})`,
        argv,
        url: () => address,
        code: 3,
        err: [
          /^parley: PARLEY_(BASE|AGENTS)_URL must|^parley: PARLEY_(BASE|AGENTS)_URL is/,
          /^(?!.*secretword)/s,
        ],
      }),
    ),
  ),
  {
    ...good,
    name: 'L13: upper case, a trailing dot and a path',
    url: ({ port }) => `http://LOCALHOST:${port}/a/b/`,
    ...isIn('/a/b/alpha_cli/'),
  },
  {
    ...good,
    name: 'L13: a name beyond ASCII',
    argv: [...chat, '--allow-http'],
    url: ({ port }) => `http://gäteway.test:${port}`,
    check: ({ server }) => {
      if (!server.requests[0]?.includes('host: xn--gteway-bua.test:')) throw new Error(server.requests[0])
    },
  },
  ...[1, 9, 6000].map(
    (port): Row => ({
      name: `L14: port ${port}, which browsers refuse, and where nothing listens`,
      argv: [...chat, '--retries', '0'],
      url: () => `http://127.0.0.1:${port}`,
      code: 9,
      err: [`parley: 127.0.0.1:${port}: connection refused\n`],
    }),
  ),
])

faultsInside('H: headers', [
  ...[
    'X: a\r\nY: b',
    'X: a\nb',
    'X Y: b',
    ': b',
    'nothing',
    'X: é',
    'X: a\u0085',
    'Host: x',
    'content-length: 5',
    'Transfer-Encoding: x',
    'Connection: x',
    `X: ${'x'.repeat(65_536)}`,
  ].map(
    (line): Row => ({
      name: `${line.length > 65_536 ? 'H04' : 'H01'} -H ${JSON.stringify(line).slice(0, 30)}`,
      argv: [...chat, '-H', line],
      code: 2,
      err: ['header'],
    }),
  ),
  {
    ...good,
    name: 'H03: -H authorization takes the place of the secret',
    argv: [...chat, '-H', 'authorization: Bearer mine', '-H', 'X-Trace: 1'],
    check: ({ server }) => {
      const lines = server.requests[0]?.match(/^authorization: .*/gim)
      if (lines?.join() !== 'authorization: Bearer mine') throw new Error(lines?.join())
    },
  },
  {
    ...good,
    name: 'H05: -H NAME: leaves a header out, also a credential, whose command does not run',
    argv: [...chat, '-H', 'authorization:', '-H', 'Content-Type:', '-H', 'x-a:'],
    env: { PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: 'touch ran; echo x' },
    check: ({ server }) => {
      const sent = server.requests[0]?.match(/^(authorization|content-type|x-a):.*/gim)
      if (sent) throw new Error(sent.join())
    },
  },
  ...['a\nb', 'é', '🦜', 'a b'].map(
    (secret): Row => ({
      name: `K03: the secret ${JSON.stringify(secret)}`,
      envOf: () => ({ PARLEY_ACCESS_TOKEN: `secretword${secret}x` }),
      code: 3,
      err: ['PARLEY_ACCESS_TOKEN', /^(?!.*secretword)/s],
    }),
  ),
  {
    ...good,
    name: 'K02: blanks around the secret',
    env: { PARLEY_ACCESS_TOKEN: ' padded-secret\n' },
    check: ({ server }) => {
      if (!server.requests[0]?.includes('Authorization: Bearer padded-secret\r\n'))
        throw new Error('not trimmed')
    },
  },
])
