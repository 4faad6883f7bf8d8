import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { messageStop, respondWith, sseHead, textDelta } from './answers.ts'
import { chatArgv, forChatAndSend, row, testFaultsOnce } from './rows.ts'
import { terminalCommand } from './terminal.ts'

const hostileTexts: [id: string, what: string, raw: string, shown: string][] = [
  ['V01', 'an OSC 52 sequence', '\x1b]52;c;ZXZpbA==\x07', '^[]52;c;ZXZpbA==^G'],
  ['V01', 'CSI sequences', 'a\x1b[2J\x1b[31mb', 'a^[[2J^[[31mb'],
  ['V03', 'C1 control characters', 'a\u009b31m\u009dx\u0090b', 'a\\u009b31m\\u009dx\\u0090b'],
  ['V04', 'CR, BS, DEL, NUL, BEL, SO, SI', 'a\rb\bc\x7fd\0e\x07f\x0eg\x0fh', 'a^Mb^Hc^?d^@e^Gf^Ng^Oh'],
  ['V05', 'bidirectional control characters', 'a\u202eb\u2066c', 'a\\u202eb\\u2066c'],
]

const onTerminal = (text: string) => ({ out: `${text.replaceAll('\n', '\r\n')}\r\n`, files: ['cwd/err'] })

testFaultsOnce('V: parley escapes remote text on a terminal', [
  ...hostileTexts.flatMap(([id, what, raw, shown]) => [
    row(`${id}: parley shows ${what} as visible text on a terminal`, {
      ...onTerminal(shown),
      shell: terminalCommand('parley chat hi --no-markdown 2>err'),
      script: respondWith(response(message(raw))),
    }),
    row(`${id}: parley shows ${what} as visible text on a terminal if a stream sends single characters`, {
      ...onTerminal(shown),
      shell: terminalCommand('parley chat hi --stream --no-markdown 2>err'),
      script: respondWith(sseHead + [...raw].map(textDelta).join('') + messageStop),
    }),
    row(`V10: parley prints ${what} unchanged into a pipe`, {
      script: respondWith(response(message(raw))),
      code: 0,
      out: `${raw}\n`,
    }),
  ]),
  ...forChatAndSend('V07: parley escapes control characters in response headers', {
    script: (socket) =>
      void socket.write(
        Buffer.from(
          'HTTP/1.1 401 No\x9b\r\nrequest-id: a\x9bb\r\nretry-after: \x9b\r\nlocation: \x9b\r\ncontent-type: x\x9b\r\ncontent-length: 2\r\n\r\n{}',
          'latin1',
        ),
      ),
    code: 3,
    err: ['answered 401 No', 'request id: a\\u009bb\n'],
  }),
  ...forChatAndSend('V07: parley -v escapes control characters in response headers and redacts cookies', {
    flags: ['-v', '--retries', '0'],
    script: (socket) =>
      void socket.write(
        Buffer.from(
          'HTTP/1.1 429 No\r\nx-a: \x85\x9b2J\r\nset-cookie: secretword\r\ncontent-length: 2\r\n\r\n{}',
          'latin1',
        ),
      ),
    code: 6,
    err: [/^(?!.*secretword)/s, /^< x-a: /m],
  }),
  row('V09: parley --raw prints control characters as JSON escapes on a terminal', {
    shell: terminalCommand('parley chat hi --raw 2>err'),
    script: respondWith(response('{"content":[],"x":"\u009b\u007f\u202e"}')),
    code: 0,
    out: '{"content":[],"x":"\\u009b\\u007f\\u202e"}\r\n',
    files: ['cwd/err'],
  }),
  row('V11: parley escapes control characters of an unknown profile name in its message', {
    argv: [...chatArgv, '--profile', 'a\x1b[2J\n::x'],
    code: 3,
    err: ['^[[2J ::x'],
  }),
  row('V14: parley prints its message after SIGINT on a new line if the answer ended within a line', {
    shell: terminalCommand(
      'parley chat hi --stream --no-markdown --color never & until grep -q half seen; do sleep 0.1; done; kill -INT $!; wait $!',
      'seen',
    ),
    files: ['cwd/seen'],
    script: respondWith(sseHead + textDelta('half a line')),
    code: 130,
    out: 'half a line\r\nparley: interrupted: the answer was cut off\r\n',
  }),
  row('V61: parley prints times in the time zone of TZ on a terminal', {
    shell: terminalCommand('stty cols 80; TZ=America/St_Johns parley events list --color never 2>err'),
    script: respondWith(
      response('{"data":[{"id":"e","type":"t","processed_at":"2026-01-01T19:34:56.789Z","content":"x"}]}'),
    ),
    code: 0,
    out: 'ID  TYPE  TIME                 TEXT\r\ne   t     2026-01-01 16:04:56  x\r\n',
    files: ['cwd/err'],
  }),
])
