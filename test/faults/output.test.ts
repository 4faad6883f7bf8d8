import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { answering, delta, ok, okText, receipt, sseHead, stop } from './answers.ts'
import { faults, type Row, stream } from './rows.ts'

const small = (command: string) =>
  `mkdir small; unshare -m sh -c 'mount -t tmpfs -o size=64k none small && ${command}'`
const megabyte = message('x'.repeat(2 ** 20))
const lines = (count: number) => Array.from({ length: count }, (_, i) => delta(`line ${i}\n`)).join('')

/** Goes on after the client has left, so that only its leaving ends the stream. */
const endless = (onClose: () => void) => (socket: Socket) => {
  socket.write(sseHead + lines(10))
  const timer = setInterval(() => socket.write(delta('more\n')), 20)
  socket.on('close', () => {
    clearInterval(timer)
    onClose()
  })
}
let hasLeft = false

/** Prints what was kept of a paid answer, and takes it away. */
const takeKept = 'cat "$TMPDIR"/parley-*.txt; rm "$TMPDIR"/parley-*.txt'

faults('O: output', [
  {
    name: 'O01: a reader that leaves early',
    shell: 'parley chat hi --stream | head -1; echo $PIPESTATUS',
    script: endless(() => {
      hasLeft = true
    }),
    code: 0,
    out: 'line 0\n0\n',
    reqs: 1,
    err: [/^$/],
    during: async () => {
      while (!hasLeft) await new Promise((resolve) => setTimeout(resolve, 10))
    },
  },
  {
    name: 'O02: a reader that leaves before anything comes',
    shell: 'parley chat hi | true; echo $PIPESTATUS',
    script: answering(ok),
    code: 0,
    out: '0\n',
    reqs: 1,
  },
  {
    name: 'O03: the receipt of an event does not fit',
    shell: 'parley events send hi > /dev/full',
    script: answering(receipt),
    code: 11,
    reqs: 1,
    err: ['stdout: no space left', 'the event was accepted, only the output failed'],
  },
  {
    name: 'O04: an answer does not fit',
    shell: `parley chat hi > /dev/full; echo $?; ${takeKept}`,
    script: answering(ok),
    code: 0,
    out: `11\n${okText.trim()}`,
    reqs: 1,
    err: ['stdout: no space left on the disk; the received data is saved as '],
  },
  {
    name: 'O04: an answer does not fit, and the thread is not made',
    shell: `parley chat hi --thread t.json > /dev/full; echo $?; ls; ${takeKept}`,
    script: answering(ok),
    code: 0,
    out: `11\n${okText.trim()}`,
    reqs: 1,
    err: ['stdout: no space left on the disk; the received data is saved as ', 't.json was not created'],
  },
  {
    name: 'O04: a stream does not fit',
    shell: `parley chat hi --stream > /dev/full; echo $?; ${takeKept}`,
    script: answering(sseHead + lines(3) + stop),
    code: 0,
    out: '11\nline 0\nline 1\nline 2\n',
    reqs: 1,
    err: ['stdout: no space left'],
  },
  {
    name: 'O04: --raw does not fit',
    shell: `parley chat hi --raw > /dev/full; echo $?; ${takeKept}`,
    script: answering(ok),
    code: 0,
    out: `11\n${message('ok')}`,
    reqs: 1,
    err: ['the received data is saved as '],
  },
  {
    name: 'O04: JSON that fits a schema does not fit',
    shell: `echo true > s; parley chat hi --schema s > /dev/full; echo $?; rm s; ${takeKept}`,
    script: answering(response(message('[1]'))),
    code: 0,
    out: '11\n[1]',
    reqs: 1,
    err: ['stdout: no space left on the disk; the received data is saved as '],
  },
  {
    name: 'O04: --raw of a failure does not fit',
    shell: 'parley chat hi --raw > /dev/full',
    script: answering(response('{}', '400 Bad')),
    code: 11,
    reqs: 1,
    err: ['stdout: no space left'],
  },
  ...['', '--stream'].map(
    (flag): Row => ({
      name: `O04: a long answer is saved whole ${flag}`.trim(),
      shell: `parley chat hi ${flag} > /dev/full; echo $?; cat "$TMPDIR"/parley-*.txt | wc -c; rm "$TMPDIR"/parley-*`,
      script: answering(response(message('x'.repeat(5 * 2 ** 20)))),
      code: 0,
      out: `11\n${5 * 2 ** 20}\n`,
      err: ['is saved as '],
      reqs: 1,
    }),
  ),
  { name: 'O04: help does not fit', shell: 'parley chat --help > /dev/full', code: 11 },
  { name: 'O04: --version does not fit', shell: 'parley --version > /dev/full', code: 11 },
  {
    name: 'O04: a file on a full disk (-o)',
    shell: `${small('parley chat hi -o small/answer')}; (${takeKept}) | wc -c`,
    script: answering(response(megabyte)),
    code: 0,
    out: '1048577\n',
    reqs: 1,
    err: ['no space left on the disk; the received data is saved as '],
  },
  {
    name: 'O04: a file that is larger than one may be',
    shell: '(ulimit -f 1; parley chat hi -o answer)',
    script: answering(response(megabyte)),
    code: 11,
    reqs: 1,
    err: [
      'answer: it would be larger than a file may be (ulimit -f says how large that is); the received data could not be',
    ],
  },
  {
    name: 'O04: a file on a full disk (>)',
    shell: `${small('parley chat hi > small/answer')}; (${takeKept}) | wc -c`,
    script: answering(response(megabyte)),
    code: 0,
    out: '1048576\n',
    reqs: 1,
    err: ['no space left on the disk; the received data is saved as '],
  },
  ...['/dev/full', '>(true)'].flatMap((target): Row[] => [
    {
      name: `O06: stderr to ${target}, success`,
      shell: `parley chat hi -v 2> ${target}`,
      script: answering(ok),
      code: 0,
      out: okText,
      reqs: 1,
    },
    {
      name: `O06: stderr to ${target}, failure`,
      shell: `parley chat hi -v 2> ${target}`,
      script: answering(response('{}', '400 Bad')),
      code: 4,
      reqs: 1,
    },
  ]),
  {
    name: 'O06: stderr closed',
    shell: 'parley chat hi -v 2>&-',
    script: answering(response('{}', '400 Bad')),
    code: 4,
    reqs: 1,
  },
  {
    name: 'O06: stdout closed',
    shell: 'parley chat hi >&-',
    script: answering(ok),
    code: 11,
    err: ['stdout: it was closed when parley started; the received data is saved as '],
    reqs: 1,
  },
  { name: 'O06: stdout closed, help', shell: 'parley --help >&-', code: 11 },
  {
    name: 'O06: stdout closed, a run',
    shell: 'parley events run -s sesn_1 hi >&-',
    code: 11,
    err: ['nothing was sent'],
    reqs: 0,
  },
  {
    name: 'O07: a megabyte into a slow pipe',
    shell: 'set -o pipefail; parley chat hi | (sleep 1; wc -c)',
    script: answering(response(megabyte)),
    code: 0,
    out: `${2 ** 20 + 1}\n`,
    reqs: 1,
  },
  {
    name: 'O09: one final newline',
    script: answering(response(message('a\n\n'))),
    code: 0,
    out: 'a\n',
    reqs: 1,
  },
  {
    name: 'O09: a command of its own on stderr only',
    argv: [...stream, '-v', '--usage'],
    script: answering(sseHead + delta('a') + stop),
    code: 0,
    out: 'a\n',
    reqs: 1,
    err: ['> POST', '— '],
  },
])

const dying = (at: 'connection' | 'request' | 'out', said: string): Partial<Row> & Pick<Row, 'code'> => ({
  signal: { name: 'SIGINT', at },
  code: 'SIGINT',
  err: [`parley: interrupted: ${said}\n`],
})

faults('G: signals', [
  {
    ...dying('out', 'the answer was cut off'),
    name: 'G01: SIGINT in a stream',
    argv: stream,
    script: answering(sseHead + delta('begun')),
    out: 'begun',
    reqs: 1,
  },
  {
    ...dying('out', 'the answer was cut off'),
    name: 'G01: SIGINT in a stream, with --errors json',
    argv: [...stream, '--errors', 'json'],
    script: answering(sseHead + delta('begun')),
    err: [
      /^\{"error":\{"format":1,"kind":"signal","exit":130,"message":"interrupted: the answer was cut off","sent":"yes","safeToRetry":true,"retry":"later"\}\}\n$/,
    ],
    out: 'begun',
    reqs: 1,
  },
  ...(['SIGTERM', 'SIGHUP'] as const).map(
    (name): Row => ({
      ...dying('out', 'the answer was cut off'),
      name: `G04: ${name} in a stream`,
      argv: stream,
      script: answering(sseHead + delta('begun')),
      signal: { name, at: 'out' },
      code: name,
      out: 'begun',
      reqs: 1,
    }),
  ),
  {
    ...dying('request', 'the request was sent; it may have been carried out'),
    name: 'G05: a second SIGINT',
    signal: { name: 'SIGINT', at: 'request', again: true },
    script: () => {},
    err: [],
    reqs: 1,
  },
  {
    name: 'G01: SIGINT stops the loop of a shell',
    shell: 'for i in 1 2 3; do parley chat hi; echo next; done; echo over',
    script: () => {},
    signal: { name: 'SIGINT', at: 'request', toGroup: true },
    code: 'SIGINT',
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'G01: SIGINT while stdout is blocked',
    shell: `parley chat hi --stream > >(sleep 3) & pid=$!
      until [ -e asked ]; do sleep 0.1; done; kill -INT $pid; wait $pid`,
    script: answering(sseHead + delta('x'.repeat(2 ** 22))),
    during: async (world, server) => {
      while (server.requests.length === 0 && world.child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 10))
      writeFileSync(join(world.cwd, 'asked'), '')
    },
    files: ['cwd/asked'],
    code: 130,
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'G02: SIGTERM while a file is written',
    argv: [...stream, '-o', 'answer.txt'],
    script: answering(sseHead + delta('begun')),
    signal: { name: 'SIGTERM', at: 'file' },
    code: 'SIGTERM',
    reqs: 1,
    err: ['the answer was cut off'],
    files: ['cwd/answer.txt.part'],
  },
  {
    name: 'G06: SIGINT while stdin is awaited (needs signals)',
    argv: ['chat'],
    stdin: { open: true },
    signal: { name: 'SIGINT', at: 'err' },
    code: 'SIGINT',
    err: ['waiting for stdin', 'nothing was sent'],
  },
  {
    name: 'G08: the exit code in a pipeline',
    shell: 'set -o pipefail; parley chat hi | tee copy',
    script: answering(response('{}', '402 Pay')),
    code: 5,
    reqs: 1,
    files: ['cwd/copy'],
  },
])
