import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response } from '../harness/server.ts'
import { answering, closing, delta, makeHead, ok, okText, receipt, receiptText, sseHead } from './answers.ts'
import { chat, endsEarly, faultsOnce, type Row } from './rows.ts'

const open = makeHead('200 OK', 'connection: close')
const long = message('x'.repeat(24 * 2 ** 20))
/** 200 MiB of zeros, compressed. */
const bomb = gzipSync(Buffer.alloc(200 * 2 ** 20))

function flood(socket: Socket, block: Uint8Array, start = ''): void {
  socket.write(open + start)
  const pump = () => {
    while (!socket.destroyed && socket.write(block));
  }
  socket.on('drain', pump)
  pump()
}

/** Answers of the wrong kind that contain one text of 140 MiB. */
const hugeTexts: {
  name: string
  head: string
  tail: string
  flags?: string[]
  code: 7 | 8
  memory: number
}[] = [
  {
    name: 'an error envelope',
    head: '{"type":"error","error":{"type":"api_error","message":"',
    tail: '"}}',
    code: 7,
    memory: 700,
  },
  { name: 'an answer of an unknown shape', head: '{"output":"', tail: '"}', code: 8, memory: 700 },
  {
    name: 'an answer that does not match the schema',
    head: '{"content":[{"type":"text","text":"',
    tail: '"}]}',
    flags: ['--schema', 'schema.json'],
    code: 8,
    memory: 1600,
  },
]

function sendHuge(socket: Socket, head: string, tail: string): void {
  const block = Buffer.alloc(2 ** 20, 'x')
  let left = 140
  socket.write(`${open}${head}`)
  const pump = () => {
    while (left-- > 0) if (!socket.write(block)) return
    socket.off('drain', pump).end(tail)
  }
  socket.on('drain', pump)
  pump()
}

const good = { script: answering(ok), code: 0, out: okText, reqs: 1 } satisfies Partial<Row>
const received = { script: answering(receipt), code: 0, out: receiptText, reqs: 1 } satisfies Partial<Row>
const nothing = { code: 2, err: ['parley: '] } satisfies Partial<Row>
const send = ['events', 'send']
const started = sseHead + delta('so far')
const line = `{"type":"user.message","content":[{"type":"text","text":"${'x'.repeat(40)}"}]}`
const manyEvents = (command: string) => `yes '${line}' | head -n 200000 | ${command}`

faultsOnce('R: large responses', [
  {
    name: 'R34: parley limits memory for a gzip bomb',
    script: answering(response(bomb, '200 OK', ['content-encoding: gzip'])),
    code: 8,
    reqs: 1,
    err: ['is not JSON'],
    memory: 150,
  },
  ...hugeTexts.map(
    ({ name, code, memory, head, tail, flags = [] }): Row => ({
      name: `R35: parley limits memory for a text of 140 MiB in ${name}`,
      script: (socket) => sendHuge(socket, head, tail),
      argv: [...chat, ...flags],
      prepare: (folder) => writeFileSync(join(folder, 'cwd/schema.json'), '{"type":"object"}'),
      files: ['cwd/schema.json'],
      code,
      reqs: 1,
      memory,
    }),
  ),
  {
    name: 'R36: parley reads an answer after 100 MiB of blanks in limited memory',
    script: (socket) => {
      socket.write(open)
      socket.write(Buffer.alloc(100 * 2 ** 20, ' '))
      socket.end(message('paid'))
    },
    code: 0,
    out: 'paid\n',
    reqs: 1,
    memory: 150,
  },
  {
    name: 'R36: parley exits with 8 if a body exceeds 512 MiB',
    script: (socket) => {
      flood(socket, Buffer.alloc(2 ** 20, 'x'), '{"content":"')
    },
    argv: [...chat, '-o', 'answer.txt'],
    code: 8,
    reqs: 1,
    files: ['cwd/answer.txt.part'],
    err: ['longer than 512 MiB'],
  },
  {
    name: 'R38: parley prints 24 MB of known length to a slow reader although FIN follows',
    shell: 'set -o pipefail; parley chat hi --raw | (sleep 1; cat)',
    script: closing(response(long)),
    code: 0,
    out: (out) => out.equals(Buffer.from(`${long}`)),
    reqs: 1,
    memory: 170,
  },
  {
    ...endsEarly,
    name: 'E09: parley exits with 8 on an event line of 100 MB',
    script: (socket) => {
      socket.write(`${started}data: `)
      for (let i = 0; i < 100; i++) socket.write('x'.repeat(2 ** 20))
    },
    err: ['more than 64 MiB'],
    memory: 250,
  },
])

faultsOnce('P: large input', [
  {
    ...good,
    name: 'P06: parley sends 100 MB from stdin in less than six times that memory',
    argv: ['chat'],
    stdin: 'x'.repeat(100 * 2 ** 20),
    memory: 550,
    check: ({ server }) => {
      if ((server.requests[0]?.length ?? 0) < 100 * 2 ** 20) throw new Error('the body was cut')
    },
  },
  {
    ...nothing,
    name: 'P22: parley rejects stdin of more than 512 MiB',
    shell: 'head -c 600000000 /dev/zero | parley chat',
    err: ['stdin: longer than 512 MiB, the most that parley reads'],
  },
  {
    ...received,
    name: 'P23: parley events send -i - sends 200,000 events with limited memory',
    shell: manyEvents('parley events send -i -'),
    memory: 230,
    check: ({ server }) => expect(server.requests[0]?.length).toBeGreaterThan(19_000_000),
  },
  {
    ...nothing,
    name: 'P25: parley prints only the first problems of 130,000 invalid lines',
    argv: send,
    stdin: '{"type":"constructor"}\n'.repeat(130_000),
    err: [
      "line 1: type: unknown event type 'constructor'",
      'stdin: more than 1000 problems',
      'and many more',
    ],
  },
])
