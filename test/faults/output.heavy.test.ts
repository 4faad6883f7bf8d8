import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { answering, closing, delta, ok, okText, receipt, sseHead } from './answers.ts'
import { faultsOnce, type Row, stream } from './rows.ts'

const small = (command: string) =>
  `mkdir small; unshare -m sh -c 'mount -t tmpfs -o size=64k none small && ${command}'`
const megabyte = message('x'.repeat(2 ** 20))
const lines = (count: number) => Array.from({ length: count }, (_, i) => delta(`line ${i}\n`)).join('')

/** Streams text until the client disconnects. */
const endless = (onClose: () => void) => (socket: Socket) => {
  socket.write(sseHead + lines(10))
  const timer = setInterval(() => socket.write(delta('more\n')), 20)
  socket.on('close', () => {
    clearInterval(timer)
    onClose()
  })
}
let hasLeft = false

/** Shell commands that print and remove the saved answer. */
const takeSavedAnswer = 'cat "$TMPDIR"/parley-*.txt; rm "$TMPDIR"/parley-*.txt'

/** Shell commands that print the length of the saved body, and remove it. */
const takeSavedBody = 'cat "$TMPDIR"/parley-* | wc -c; rm "$TMPDIR"/parley-*'

/** Shell commands that print the length of the answer in the saved results, and remove the results. */
const takeSavedResult = `grep -o '"text":"x*"' "$TMPDIR"/parley-*.ndjson | wc -c; rm "$TMPDIR"/parley-*.ndjson`

faultsOnce('O: output', [
  {
    name: 'O01: parley exits with 0 if the reader leaves early',
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
    name: 'O02: parley exits with 0 if the reader leaves before the first output',
    shell: 'parley chat hi | true; echo $PIPESTATUS',
    script: answering(ok),
    code: 0,
    out: '0\n',
    reqs: 1,
  },
  {
    name: 'O03: parley reports that the event was accepted if stdout is full',
    shell: 'parley events send hi > /dev/full',
    script: answering(receipt),
    code: 11,
    reqs: 1,
    err: ['stdout: no space left', 'the event was accepted, only the output failed'],
  },
  {
    name: 'O04: parley saves the answer if stdout is full',
    shell: `parley chat hi > /dev/full; echo $?; ${takeSavedAnswer}`,
    script: answering(ok),
    code: 0,
    out: `11\n${okText.trim()}`,
    reqs: 1,
    err: ['stdout: no space left on the disk; the received data is saved as '],
  },
  ...['', '--stream'].map(
    (flag): Row => ({
      name: `O04: parley saves the whole of a long answer if stdout is full ${flag}`.trim(),
      shell: `parley chat hi ${flag} > /dev/full; echo $?; cat "$TMPDIR"/parley-*.txt | wc -c; rm "$TMPDIR"/parley-*`,
      script: answering(response(message('x'.repeat(5 * 2 ** 20)))),
      code: 0,
      out: `11\n${5 * 2 ** 20}\n`,
      err: ['is saved as '],
      reqs: 1,
    }),
  ),
  {
    name: 'O04: parley saves the answer if the disk of -o is full',
    shell: `${small('parley chat hi -o small/answer')}; (${takeSavedAnswer}) | wc -c`,
    script: answering(response(megabyte)),
    code: 0,
    out: '1048577\n',
    reqs: 1,
    err: ['no space left on the disk; the received data is saved as '],
  },
  {
    name: 'O04: parley exits with 11 and names ulimit -f if a file exceeds that limit',
    shell: '(ulimit -f 1; parley chat hi -o answer)',
    script: answering(response(megabyte)),
    code: 11,
    reqs: 1,
    err: [
      'answer: the file would exceed the size limit (ulimit -f shows the limit); the received data could not be',
    ],
  },
  {
    name: 'O16: parley saves a result of a batch if the disk of stdout accepts only a part of it',
    shell: `echo '"hi"' > in; ${small('parley chat --batch in > small/r')}; echo $?; rm in; ${takeSavedResult}`,
    script: answering(response(message('x'.repeat(100_000)))),
    code: 0,
    out: '11\n100010\n',
    reqs: 1,
    err: ['parley: stdout: no space left on the disk; the received data is saved as ', '  to resume: '],
  },
  ...['> small/r', '-o small/r'].map(
    (target): Row => ({
      name: `O17: parley saves the rest of the body of api if the disk accepts only a part, with ${target}`,
      shell: `${small(`parley api gateway /v1/m --set a=1 ${target}`)}; echo $?; ${takeSavedBody}`,
      script: answering(response('x'.repeat(100_000))),
      code: 0,
      out: (out) => /^11\n\d+\n$/.test(out.toString()),
      reqs: 1,
      err: ['no space left on the disk; '],
      check({ ending }) {
        const [, first] = /the received data from byte (\d+) on is saved as /.exec(ending.err) ?? []
        expect(Number(ending.out.toString().split('\n')[1])).toBe(100_000 - Number(first))
      },
    }),
  ),
  ...['/dev/full', '>(true)'].flatMap((target): Row[] => [
    {
      name: `O06: parley prints the answer if stderr is ${target}`,
      shell: `parley chat hi -v 2> ${target}`,
      script: answering(ok),
      code: 0,
      out: okText,
      reqs: 1,
    },
    {
      name: `O06: parley exits with 4 on a 400 if stderr is ${target}`,
      shell: `parley chat hi -v 2> ${target}`,
      script: answering(response('{}', '400 Bad')),
      code: 4,
      reqs: 1,
    },
  ]),
  {
    name: 'O06: the message of a cut begins on a new line if stdout and stderr are the same pipe',
    shell: 'parley chat hi --stream 2>&1 | cat',
    script: closing(sseHead + delta('so far')),
    code: 0,
    out: (out) => out.toString().startsWith('so far\nparley: the stream ended early'),
    reqs: 1,
  },
  {
    name: 'O06: parley saves the answer if stdout is closed',
    shell: 'parley chat hi >&-',
    script: answering(ok),
    code: 11,
    err: ['stdout: it was closed when parley started; the received data is saved as '],
    reqs: 1,
  },
  {
    name: 'O06: events run sends nothing if stdout is closed',
    shell: 'parley events run -s sesn_1 hi >&-',
    code: 11,
    err: ['nothing was sent'],
    reqs: 0,
  },
])

const endsBySigint = (
  at: 'connection' | 'request' | 'out',
  message: string,
): Partial<Row> & Pick<Row, 'code'> => ({
  signal: { name: 'SIGINT', at },
  code: 'SIGINT',
  err: [`parley: interrupted: ${message}\n`],
})

faultsOnce('G: signals', [
  {
    ...endsBySigint('out', 'the answer was cut off'),
    name: 'G01: parley prints the text so far if SIGINT ends a stream',
    argv: stream,
    script: answering(sseHead + delta('begun')),
    out: 'begun\n',
    reqs: 1,
  },
  {
    ...endsBySigint('out', 'the answer was cut off'),
    name: 'G04: parley prints the text so far if SIGHUP ends a stream',
    argv: stream,
    script: answering(sseHead + delta('begun')),
    signal: { name: 'SIGHUP', at: 'out' },
    code: 'SIGHUP',
    out: 'begun\n',
    reqs: 1,
  },
  {
    ...endsBySigint('request', 'the request was sent; it may have been carried out'),
    name: 'G05: parley ends by SIGINT if a second one follows at once',
    signal: { name: 'SIGINT', at: 'request', again: true },
    script: () => {},
    err: [],
    reqs: 1,
  },
  {
    name: 'G01: SIGINT ends parley and the shell loop that runs it',
    shell: 'for i in 1 2 3; do parley chat hi; echo next; done; echo over',
    script: () => {},
    signal: { name: 'SIGINT', at: 'request', toGroup: true },
    code: 'SIGINT',
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'G01: parley ends by SIGINT while stdout is blocked',
    shell: `parley chat hi --stream > >(sleep 3) & pid=$!
      until [ -e requested ]; do sleep 0.1; done; kill -INT $pid; wait $pid`,
    script: answering(sseHead + delta('x'.repeat(2 ** 22))),
    during: async (command, server) => {
      while (server.requests.length === 0 && command.child.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 10))
      writeFileSync(join(command.cwd, 'requested'), '')
    },
    files: ['cwd/requested'],
    code: 130,
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'G06: parley reports that nothing was sent if SIGINT ends the wait for stdin (needs signals)',
    argv: ['chat'],
    stdin: { open: true },
    signal: { name: 'SIGINT', at: 'err' },
    code: 'SIGINT',
    err: ['waiting for stdin', 'nothing was sent'],
  },
  {
    name: 'G08: parley returns its exit code in a pipeline with pipefail',
    shell: 'set -o pipefail; parley chat hi | tee copy',
    script: answering(response('{}', '402 Pay')),
    code: 5,
    reqs: 1,
    files: ['cwd/copy'],
  },
])
