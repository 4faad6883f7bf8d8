import { message } from '../harness/run.ts'
import { response, type Script } from '../harness/server.ts'
import { respondWith } from './answers.ts'
import { chatArgv, forChatAndSend, row, testNetworkFaults } from './rows.ts'

const page = '<!doctype html><html><head><title>Bad gateway</title></head><body>A page</body></html>'
const json = (body: string | Uint8Array): Script => respondWith(response(body))
const quoted = (bytes: number[]) =>
  Buffer.concat([Buffer.from('{"content":[{"type":"text","text":"'), Buffer.from(bytes), Buffer.from('"}]}')])
const odd =
  '{ "content":[{"type":"text","text":"a"}], "b":12345678901234567890, "n":1.10, "n":-0, "e":1e400, "__proto__":{"x":1},"constructor":2 }\n'

testNetworkFaults('R: parley reads odd response content', [
  row('R13: parley chat reads JSON without a content type', {
    script: (socket) => {
      const body = message('hi')
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
    },
    code: 0,
    out: 'hi\n',
  }),
  ...forChatAndSend('R15: parley prints only the title of an HTML page with status 502', {
    script: respondWith(response(page, '502 Bad', ['content-type: text/html'])),
    flags: ['--retries', '0'],
    code: 7,
    err: [/answered 502 Bad\n(.*\n)? {2}the service says: Bad gateway\n$/],
  }),
  ...(
    [
      [
        'prints at most 500 characters of an error message of 1 MiB',
        `{"message":"${'m'.repeat(2 ** 20 - 20)}"}`,
        `the service says: ${'m'.repeat(499)}…\n`,
      ],
      [
        'escapes control characters in an error message of the service',
        '{"error":{"message":"a\\u001b[31m\\n::add-mask::\\u0085\\r\\nb"}}',
        'the service says: a^[[31m ::add-mask::\\u0085 b\n',
      ],
    ] as const
  ).flatMap(([rule, body, message]) =>
    forChatAndSend(`R16: parley ${rule}`, {
      script: respondWith(response(body, '400 Bad Request')),
      code: 4,
      err: [message],
    }),
  ),
  row(
    'R19: parley replaces bytes that are not UTF-8 and prints a warning, even with -q',
    { argv: [...chatArgv, '-q'], script: json(quoted([0x61, 0xff])) },
    { code: 0, out: 'a\ufffd\n', err: ['parley: the answer has \ufffd, which usually replaces bytes'] },
  ),
  row(
    'R19: parley prints bytes that are not UTF-8 unchanged with --raw',
    { argv: [...chatArgv, '--raw'], script: json(quoted([0x61, 0xff])) },
    { code: 0, out: quoted([0x61, 0xff]), err: [/^$/] },
  ),
  row('R20: parley replaces a lone surrogate in an answer with U+FFFD', {
    script: json(quoted([...Buffer.from('a\\ud800b')])),
    code: 0,
    out: 'a\ufffdb\n',
  }),
  row(
    'R23: parley --raw prints large numbers and duplicate keys of a response unchanged',
    { argv: [...chatArgv, '--raw'], script: json(odd) },
    { code: 0, out: odd },
  ),
  row('R24: parley reads __proto__ and constructor in a response as ordinary keys', {
    script: json(odd),
    code: 0,
    out: 'a\n',
  }),
])
