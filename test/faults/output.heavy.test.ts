import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { okResponse, respondAndClose, respondWith, sendResponse, sseHead, textDelta } from './answers.ts'
import { pause } from './launch.ts'
import { chatSuccess, endsBySigint, row, streamArgv, testFaultsOnce } from './rows.ts'

/** Returns a shell command that runs `command` with a folder `small`, a disk of 64 KiB. */
const withSmallDisk = (command: string) =>
  `mkdir small; unshare -m sh -c 'mount -t tmpfs -o size=64k none small && ${command}'`
const megabyte = message('x'.repeat(2 ** 20))
const lines = (count: number) => Array.from({ length: count }, (_, i) => textDelta(`line ${i}\n`)).join('')

/** Streams text until the client disconnects, then calls `onClose`. */
const endless = (onClose: () => void) => (socket: Socket) => {
  socket.write(sseHead + lines(10))
  const timer = setInterval(() => socket.write(textDelta('more\n')), 20)
  socket.on('close', () => {
    clearInterval(timer)
    onClose()
  })
}
let hasLeft = false

/** Shell commands that print the length of the saved body and remove its file. */
const printSavedLength = 'cat "$TMPDIR"/parley-* | wc -c; rm "$TMPDIR"/parley-*'

/** Shell commands that print the length of the answer in the saved results and remove their file. */
const printSavedResultLength = `grep -o '"text":"x*"' "$TMPDIR"/parley-*.ndjson | wc -c; rm "$TMPDIR"/parley-*.ndjson`

testFaultsOnce('O: parley saves or prints each answer if an output fails', [
  row('O01: parley exits with 0 if the reader of stdout leaves during a stream', {
    shell: 'parley chat hi --stream | head -1; echo $PIPESTATUS',
    script: endless(() => {
      hasLeft = true
    }),
    code: 0,
    out: 'line 0\n0\n',
    err: [/^$/],

    // Waits even after the command has ended, so the row fails if parley does not close the connection.
    during: async () => {
      while (!hasLeft) await pause(10)
    },
  }),
  row(
    'O02: parley exits with 0 if the reader of stdout leaves before the first output',
    { shell: 'parley chat hi | true; echo $PIPESTATUS', script: respondWith(okResponse) },
    { code: 0, out: '0\n' },
  ),
  row(
    'O03: parley reports that the event was accepted if stdout is full',
    { shell: 'parley events send hi > /dev/full', script: respondWith(sendResponse) },
    { code: 11, err: ['stdout: no space left', 'the event was accepted, only the output failed'] },
  ),
  ...['chat', 'chat --stream'].map((command) =>
    row(`O04: parley ${command} saves the whole answer of 5 MiB if stdout is full`, {
      shell: `parley ${command} hi > /dev/full; echo $?; ${printSavedLength}`,
      script: respondWith(response(message('x'.repeat(5 * 2 ** 20)))),
      code: 0,
      out: `11\n${5 * 2 ** 20}\n`,
      err: ['is saved as '],
    }),
  ),
  row('O04: parley exits with 11 and names ulimit -f if the file of -o exceeds this limit', {
    shell: '(ulimit -f 1; parley chat hi -o answer)',
    script: respondWith(response(megabyte)),
    code: 11,
    err: [
      'answer: the file would exceed the size limit (ulimit -f shows the limit); the received data could',
    ],
  }),
  row('O16: parley saves a result of a batch if stdout accepts only a part of the line', {
    shell: `echo '"hi"' > in; ${withSmallDisk('parley chat --batch in > small/r')}; echo $?; rm in; ${printSavedResultLength}`,
    script: respondWith(response(message('x'.repeat(100_000)))),
    code: 0,
    out: '11\n100010\n',
    err: ['parley: stdout: no space left on the disk; the received data is saved as ', '  to resume: '],
  }),
  row('O16: parley prints a result of a batch if neither stdout nor the temporary folder accepts it', {
    shell: `echo '"hi"' > in; (ulimit -f 0; parley chat --batch in > /dev/full); echo $?; rm in`,
    script: respondWith(response(message('paid'))),
    code: 0,
    out: '11\n',
    err: ['the received data could not be saved in ', '  the answer:\n  | {"index":1,', '"text":"paid"'],
  }),
  ...['> small/r', '-o small/r'].map((target) =>
    row(`O17: parley api ${target} saves the rest of the body if the disk accepts only a part`, {
      shell: `${withSmallDisk(`parley api gateway /v1/m --set a=1 ${target}`)}; echo $?; ${printSavedLength}`,
      script: respondWith(response('x'.repeat(100_000))),
      code: 0,
      out: (out) => /^11\n\d+\n$/.test(out.toString()),
      err: ['no space left on the disk; '],
      check({ ending }) {
        const [, first] = /from byte (\d+) on is saved as /.exec(ending.err) ?? []
        expect(Number(ending.out.toString().split('\n')[1])).toBe(100_000 - Number(first))
      },
    }),
  ),
  ...['/dev/full', '>(true)'].flatMap((target) => [
    row(`O06: parley prints the answer if stderr is ${target}`, {
      ...chatSuccess,
      shell: `parley chat hi -v 2> ${target}`,
    }),
    row(`O06: parley exits with 4 on a 400 if stderr is ${target}`, {
      shell: `parley chat hi -v 2> ${target}`,
      script: respondWith(response('{}', '400 Bad')),
      code: 4,
    }),
  ]),
  row(
    'O06: parley prints the message of a cut stream on a new line if stdout and stderr are one pipe',
    { shell: 'parley chat hi --stream 2>&1 | cat', script: respondAndClose(sseHead + textDelta('so far')) },
    { code: 0, out: (out) => out.toString().startsWith('so far\nparley: the stream ended early') },
  ),
  row(
    'O06: parley chat exits with 11 and saves the answer if stdout is closed',
    { shell: 'parley chat hi >&-', script: respondWith(okResponse) },
    { code: 11, err: ['stdout: it was closed when parley started; the received data is saved as '] },
  ),
  row(
    'O06: parley events run exits with 11 and sends nothing if stdout is closed',
    { shell: 'parley events run -s sesn_1 hi >&-' },
    { code: 11, err: ['nothing was sent'], reqs: 0 },
  ),
])

const begun = { argv: streamArgv, script: respondWith(sseHead + textDelta('begun')) }

testFaultsOnce('G: parley ends by signals', [
  row('G01: parley prints the text so far if SIGINT ends a stream', {
    ...endsBySigint('out', ': the answer was cut off'),
    ...begun,
    out: 'begun\n',
  }),
  row('G04: parley prints the text so far if SIGHUP ends a stream', {
    ...endsBySigint('out', ': the answer was cut off'),
    ...begun,
    signal: { name: 'SIGHUP', at: 'out' },
    code: 'SIGHUP',
    out: 'begun\n',
  }),
  row('G04: parley saves the text so far of --stream -o FILE if SIGQUIT (Ctrl-\\) ends parley', {
    shell: 'ulimit -c 0; exec parley chat hi --stream -o a.txt',
    script: respondWith(sseHead + textDelta('begun')),
    signal: { name: 'SIGQUIT', at: 'request' },
    code: 'SIGQUIT',
    err: ['parley: interrupted: the answer was cut off; the received data is saved as a.txt.part'],
    files: ['cwd/a.txt.part'],
  }),
  row('G05: parley ends by SIGINT if a second SIGINT follows at once', {
    ...endsBySigint('request', ': the request was sent; it may have been carried out'),
    signal: { name: 'SIGINT', at: 'request', again: true },
    script: () => {},
    err: [],
  }),
  row('G01: SIGINT ends parley and the shell loop that runs parley', {
    shell: 'for i in 1 2 3; do parley chat hi; echo next; done; echo over',
    script: () => {},
    signal: { name: 'SIGINT', at: 'request', toGroup: true },
    code: 'SIGINT',
    err: ['interrupted'],
  }),
  row('G01: parley ends by SIGINT while the reader of stdout does not read', {
    shell: `parley chat hi --stream > >(sleep 3) & pid=$!
      until [ -e requested ]; do sleep 0.1; done; kill -INT $pid; wait $pid`,
    script: respondWith(sseHead + textDelta('x'.repeat(2 ** 22))),
    during: async ({ cwd, waitUntil }, server) => {
      await waitUntil(() => server.requests.length > 0)
      writeFileSync(join(cwd, 'requested'), '')
    },
    files: ['cwd/requested'],
    code: 130,
    err: ['interrupted'],
  }),
  row(
    'G06: parley reports that nothing was sent if SIGINT ends the wait for stdin (needs signals)',
    { argv: ['chat'], stdin: { open: true }, signal: { name: 'SIGINT', at: 'err' } },
    { code: 'SIGINT', err: ['waiting for stdin', 'nothing was sent'] },
  ),
])
