import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { copyProgramForNobody } from '../harness/process.ts'
import { answering, ok, okText, receipt, receiptText } from './answers.ts'
import { chat, events, faults, faultsInside, type Row } from './rows.ts'
import { onTerminal, quote } from './terminal.ts'

const good = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const send = ['events', 'send']
const refusedInput = { code: 2, err: ['parley: '] } satisfies Partial<Row>
/** An open pipe without input, which ends after parley has announced that it waits for stdin. */
const hinted = {
  stdin: { open: true },
  during: async ({ child, err }) => {
    while (err() === '' && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 10))
    child.stdin?.end()
  },
  err: ['waiting for stdin (--no-stdin skips it)'],
} satisfies Partial<Row>

const expectPrompt = (text: string): Pick<Row, 'check'> => ({
  check: ({ server }) => {
    const { contents } = JSON.parse(server.requests[0]?.split('\r\n\r\n')[1] ?? '')
    const sent = contents[0].parts.map((part: { text: string }) => part.text).join('|')
    if (sent !== text) throw new Error(`sent: ${JSON.stringify(sent).slice(0, 200)}`)
  },
})

const expectBody = (text: string): Pick<Row, 'check'> => ({
  check: ({ server }) => expect(server.requests[0]?.split('\r\n\r\n')[1]).toBe(text),
})

faults('P: stdin and event input', [
  ...[['chat'], send].flatMap((argv): Row[] => [
    { ...refusedInput, name: `P01: parley rejects /dev/null as stdin (${argv[0]})`, argv, err: ['empty'] },
    {
      ...refusedInput,
      name: `P02: parley rejects a closed stdin (${argv[0]})`,
      shell: `parley ${argv.join(' ')} <&-`,
      err: ['empty'],
    },
    {
      name: `P03: parley exits with 2 and a hint if stdin is a terminal (${argv[0]})`,
      shell: onTerminal(`NO_COLOR=1 parley ${argv.join(' ')} 2>&1`),
      code: 2,
      out: (out) => /^parley: no (prompt: add|events: give) .*\r\n$/.test(out.toString()),
    },
    {
      ...refusedInput,
      name: `P08: parley names the line of stdin that is not UTF-8 (${argv[0]})`,
      argv,
      stdin: Buffer.from('ab\xff', 'latin1'),
      err: ['on line 1'],
    },
    {
      name: `P11: parley exits with 11 if stdin is a folder (${argv[0]})`,
      shell: `parley ${argv.join(' ')} </`,
      code: 11,
      err: ['it is a folder'],
    },
  ]),
  {
    ...good,
    name: 'P04: parley waits for a slow writer to stdin',
    shell: '(sleep 1; echo one; sleep 1; echo two) | parley chat',
    ...expectPrompt('one\ntwo\n'),
    atLeast: 2,
  },
  {
    name: 'P05: parley does not wait for an idle pipe with --no-stdin (events)',
    either: 'a run with an empty stdin ends, too',
    argv: [...events, '--no-stdin'],
    stdin: { open: true },
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
  },
  {
    ...good,
    name: 'P05: parley does not wait for an idle pipe with --no-stdin (chat)',
    argv: [...chat, '--no-stdin'],
    stdin: { open: true },
  },
  {
    ...good,
    name: 'P05: parley prints a hint while it waits for an idle pipe (chat)',
    ...hinted,
  },
  {
    ...good,
    name: 'P09: parley drops a byte order mark on stdin',
    argv: ['chat'],
    stdin: '\ufeffhi',
    ...expectPrompt('hi'),
  },
  {
    ...good,
    name: 'P10: parley keeps NUL, CRLF and a missing last newline',
    argv: ['chat'],
    stdin: 'a\0b\r\nc',
    ...expectPrompt('a\0b\r\nc'),
  },
  {
    name: 'P14: parley sends an unknown event type with --no-validate',
    argv: [...send, '--event', '{"type":"user.strange"}', '--no-validate'],
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
    ...expectBody('{"events":[{"type":"user.strange"}]}'),
  },
  {
    name: 'P15: parley exits with 11 if @FILE is missing',
    argv: [...send, '--message', '@none'],
    code: 11,
    err: ['none: no such file'],
  },
  {
    name: 'P15: parley reads a FIFO given as @FILE',
    shell: 'mkfifo pipe; (echo from the pipe > pipe &); parley events send --message @pipe',
    script: answering(receipt),
    code: 0,
    out: receiptText,
    reqs: 1,
    check: ({ server }) => {
      if (!server.requests[0]?.includes('from the pipe')) throw new Error('the FIFO was not read')
    },
  },
  {
    name: 'P15: parley exits with 11 if @FILE cannot be read (needs another user)',
    shell: `chmod 0 secret; ${copyProgramForNobody().map(quote).join(' ')} events send --message @secret
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
  {
    ...refusedInput,
    name: 'P16: parley rejects two readers of stdin: -i - -',
    argv: ['chat', '-i', '-', '-'],
    stdin: 'x',
  },
])

const messageOf = (...texts: string[]) =>
  JSON.stringify({
    events: [{ type: 'user.message', content: texts.map((text) => ({ type: 'text', text })) }],
  })
const received = { script: answering(receipt), code: 0, out: receiptText, reqs: 1 } satisfies Partial<Row>

faults('P: piped text with words, deadlines and sizes', [
  {
    ...received,
    name: 'P20: parley sends words and a pipe as two blocks of one message',
    argv: events,
    stdin: 'diff\n',
    ...expectBody(messageOf('hi', 'diff\n')),
  },
  ...[['chat'], chat, send, events].map(
    (argv): Row => ({
      name: `P21: parley exits with 9 at the deadline while it waits for stdin: ${argv.join(' ')}`,
      argv: [...argv, '--deadline', '1', '-q'],
      stdin: { open: true },
      code: 9,
      err: [/^parley: the deadline passed while stdin was read\n {2}nothing was sent\n$/],
      atLeast: 0.9,
    }),
  ),
  {
    name: 'P21: parley counts the wait for stdin against the deadline',
    shell: '(sleep 2; echo hi) | parley chat --deadline 5',
    script: () => {},
    code: 10,
    reqs: 1,
    err: ['the deadline passed'],
    atLeast: 4.9,
  },
  ...[['chat'], send].map(
    (argv): Row => ({
      ...refusedInput,
      name: `P24: parley rejects 5,000 nested lists (${argv[0]})`,
      argv: [...argv, '-i', '-'],
      stdin: `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`,
      err: ['stdin: not valid JSON: line 1, column 1005: nested more than 1000 deep'],
    }),
  ),
])

const ids: [id: string, value: string, path?: string][] = [
  ['L01', '..'],
  ['L02', '.'],
  ['L02', '%2e%2e'],
  ['L03', 'a/b', 'a%2Fb'],
  ['L03', 'a%2fb', 'a%252fb'],
  ['L04', 'a?x=1', 'a%3Fx%3D1'],
  ['L05', 'a\rb'],
  ['L05', 'a\u0085b'],
  ['L06', 'é', '%C3%A9'],
  ['L06', '🦜', '%F0%9F%A6%9C'],
  ['L08', 'x'.repeat(10_240)],
  ['L08', '-x', '-x'],
]

/** Values that are also tried as a model, which goes through the same check and encoding. */
const models = new Set(['..', 'a\rb', 'a/b', 'a?x=1', 'é', '-x'])

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
        {
          ...refused,
          name: `${id}: parley rejects the session id ${shown}`,
          argv: [...events, `--session=${value}`],
        },
        ...(models.has(value)
          ? [
              {
                ...refused,
                name: `L09: parley rejects the model ${shown}`,
                argv: [...chat, `--model=${value}`],
              },
            ]
          : []),
      ]
    }
    return [
      {
        name: `${id}: parley sends the session id ${shown} as one path segment`,
        argv: [...events, `--session=${value}`],
        script: answering(receipt),
        code: 0,
        out: receiptText,
        reqs: 1,
        ...isIn(`/v1/sessions/${path}/events`),
      },
      ...(models.has(value)
        ? [
            {
              ...good,
              name: `L09: parley sends the model ${shown} as one path segment`,
              argv: [...chat, `--model=${value}`],
              ...isIn(`/models/${path}:gen`),
            },
          ]
        : []),
    ]
  }),
  {
    name: 'L02: parley rejects an empty session id',
    argv: [...events, '--session='],
    code: 2,
    env: { PARLEY_SESSION: '' },
  },
  ...['http://127.0.0.1:1/?a=b', 'http://user:secretword@127.0.0.1:1/', 'gateway.example'].map(
    (address, index): Row => ({
      name: `L11, L12: parley rejects the address ${JSON.stringify(address)}`,
      argv: index % 2 === 0 ? chat : events,
      url: () => address,
      code: 3,
      err: [
        /^parley: PARLEY_(BASE|AGENTS)_URL must|^parley: PARLEY_(BASE|AGENTS)_URL is/,
        /^(?!.*secretword)/s,
      ],
    }),
  ),
  {
    ...good,
    name: 'L13: parley accepts a host in upper case and a path with a trailing slash',
    url: ({ port }) => `http://LOCALHOST:${port}/a/b/`,
    ...isIn('/a/b/alpha_cli/'),
  },
  {
    name: 'L14: parley accepts port 1, which browsers refuse',
    argv: [...chat, '--retries', '0'],
    url: () => 'http://127.0.0.1:1',
    code: 9,
    err: ['parley: 127.0.0.1:1: connection refused\n'],
  },
])

faultsInside('H: headers', [
  ...['X: a\r\nY: b', 'nothing', 'X: a\u0085', 'Host: x', `X: ${'x'.repeat(65_536)}`].map(
    (line): Row => ({
      name: `${line.length > 65_536 ? 'H04' : 'H01'}: parley rejects -H ${JSON.stringify(line).slice(0, 30)}`,
      argv: [...chat, '-H', line],
      code: 2,
      err: ['header'],
    }),
  ),
  {
    ...good,
    name: 'H03: parley sends -H authorization instead of the secret',
    argv: [...chat, '-H', 'authorization: Bearer mine', '-H', 'X-Trace: 1'],
    check: ({ server }) => {
      const lines = server.requests[0]?.match(/^authorization: .*/gim)
      if (lines?.join() !== 'authorization: Bearer mine') throw new Error(lines?.join())
    },
  },
  {
    ...good,
    name: 'H05: parley omits a header for -H NAME: and does not run the command of an omitted credential',
    argv: [...chat, '-H', 'authorization:', '-H', 'Content-Type:', '-H', 'x-a:'],
    env: { PARLEY_ACCESS_TOKEN: '', PARLEY_ACCESS_TOKEN_COMMAND: 'touch ran; echo x' },
    check: ({ server }) => {
      const sent = server.requests[0]?.match(/^(authorization|content-type|x-a):.*/gim)
      if (sent) throw new Error(sent.join())
    },
  },
])
