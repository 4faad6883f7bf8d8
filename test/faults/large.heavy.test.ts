import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { formatHead, respondAndClose, respondWith, sseHead, textDelta } from './answers.ts'
import { chatSuccess, row, sendSuccess, testFaultsOnce, unfinishedStream, usageError } from './rows.ts'

const open = formatHead('200 OK', 'connection: close')
const long = message('x'.repeat(24 * 2 ** 20))
/** 200 MiB of zeros, compressed. */
const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20))

/** Answers that are no usable text although they contain one text of 140 MiB. */
const hugeTexts: [what: string, head: string, tail: string, code: 7 | 8, maxMiB: number, flags?: string[]][] =
  [
    ['an error body with status 200', '{"error":{"type":"api_error","message":"', '"}}', 7, 700],
    ['an answer of an unknown format', '{"output":"', '"}', 8, 700],
    [
      'an answer that does not match the schema',
      '{"content":[{"text":"',
      '"}]}',
      8,
      1600,
      ['--schema', 'schema.json'],
    ],
  ]

/** Sends a body of `head`, a number of mebibytes, and `tail`, as fast as the client reads. */
function sendMebibytes(socket: Socket, count: number, head: string, tail = ''): void {
  const mebibyte = Buffer.alloc(2 ** 20, 'x')
  let left = count
  socket.write(`${open}${head}`)
  const writeMore = () => {
    while (!socket.destroyed && left-- > 0) if (!socket.write(mebibyte)) return
    if (!socket.destroyed) socket.off('drain', writeMore).end(tail)
  }
  socket.on('drain', writeMore)
  writeMore()
}

const started = sseHead + textDelta('so far')
const messageLine = `{"type":"user.message","content":[{"type":"text","text":"${'x'.repeat(40)}"}]}`

testFaultsOnce('R: parley reads large responses in limited memory', [
  row(
    'R34: parley decompresses a response of 200 MiB in limited memory',
    { script: respondWith(response(bomb, '200 OK', ['content-encoding: gzip'])) },
    { code: 8, err: ['is not JSON'], maxMiB: 150 },
  ),
  ...hugeTexts.map(([what, head, tail, code, maxMiB, flags = []]) =>
    row(`R35: parley reads a text of 140 MiB in ${what} in limited memory`, {
      script: (socket) => sendMebibytes(socket, 140, head, tail),
      argv: ['chat', 'hi', ...flags],
      prepare: (folder) => writeFileSync(join(folder, 'cwd/schema.json'), '{"type":"object"}'),
      files: ['cwd/schema.json'],
      code,
      maxMiB,
    }),
  ),
  row('R36: parley reads an answer after 100 MiB of spaces in limited memory', {
    script: (socket) => {
      socket.write(open)
      socket.write(Buffer.alloc(100 * 2 ** 20, ' '))
      socket.end(message('paid'))
    },
    code: 0,
    out: 'paid\n',
    maxMiB: 150,
  }),
  row('R36: parley exits with 8 if a response exceeds 512 MiB', {
    script: (socket) => sendMebibytes(socket, Infinity, '{"content":"'),
    argv: ['chat', 'hi', '-o', 'answer.txt'],
    code: 8,
    files: ['cwd/answer.txt.part'],
    err: ['longer than 512 MiB'],
  }),
  row('R38: parley prints all of 24 MB to a slow reader although the server has closed the connection', {
    shell: 'set -o pipefail; parley chat hi --raw | (sleep 1; cat)',
    script: respondAndClose(response(long)),
    code: 0,
    out: (out) => out.equals(Buffer.from(`${long}`)),
    maxMiB: 170,
  }),
  row('E09: parley exits with 8 on a stream whose event has a line of 100 MB', {
    ...unfinishedStream,
    script: (socket) => {
      socket.write(`${started}data: `)
      for (let i = 0; i < 100; i++) socket.write('x'.repeat(2 ** 20))
    },
    err: ['more than 64 MiB'],
    maxMiB: 250,
  }),
])

testFaultsOnce('P: parley reads large input in limited memory', [
  row(
    'P06: parley sends 100 MiB from stdin in less than six times that memory',
    { ...chatSuccess, argv: ['chat'], stdin: 'x'.repeat(100 * 2 ** 20) },
    { maxMiB: 550, check: ({ server }) => expect(server.requests[0]?.length).toBeGreaterThan(100 * 2 ** 20) },
  ),
  row('P22: parley exits with 2 if stdin is longer than 512 MiB', {
    ...usageError,
    shell: 'head -c 600000000 /dev/zero | parley chat',
    err: ['stdin: longer than 512 MiB, the most that parley reads'],
  }),
  row(
    'P23: parley sends 200,000 events from stdin in limited memory',
    { ...sendSuccess, shell: `yes '${messageLine}' | head -n 200000 | parley events send -i -` },
    { maxMiB: 260, check: ({ server }) => expect(server.requests[0]?.length).toBeGreaterThan(19_000_000) },
  ),
  row('P25: parley exits with 2 and prints only the first problems of 130,000 invalid events', {
    ...usageError,
    argv: ['events', 'send'],
    stdin: '{"type":"constructor"}\n'.repeat(130_000),
    err: ["line 1: type: unknown event type 'constructor'", 'more than 1000 problems', 'and many more'],
  }),
])
