import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response, type Script } from '../harness/server.ts'
import { messageStop, okOutput, okResponse, respondWith, sseHead, textDelta } from './answers.ts'
import { chatArgv, row, streamArgv, testFaultsOnce } from './rows.ts'

const goneEvent = 'event: error\ndata: {"error":{"message":"gone"}}\n\n'
const broken = respondWith(`${sseHead}${textDelta('begun')}${goneEvent}`)
const inCwd = (folder: string, name: string) => join(folder, 'cwd', name)

/** Answers two requests at the same time: sends the second half of each stream after both requests. */
const interleaveStreams = (): Script => {
  const waiting: (() => void)[] = []
  return (socket, _, count) => {
    const letter = count === 1 ? 'a' : 'b'
    socket.write(sseHead + textDelta(letter.repeat(1000)))
    waiting.push(() => socket.end(textDelta(letter.repeat(1000)) + messageStop))
    if (waiting.length === 2) for (const finish of waiting) finish()
  }
}

testFaultsOnce('F: parley writes whole answer files', [
  row('F01: one whole answer remains if two runs write the same -o file', {
    shell: 'run() { parley chat hi --stream -o a.txt; }; run & one=$!; run & wait $! && wait $one',
    script: interleaveStreams(),
    code: 0,
    reqs: 2,
    files: ['cwd/a.txt'],
    check: ({ ending }) => expect(ending.files.get('cwd/a.txt')).toMatch(/^(a{2000}|b{2000})\n$/),
  }),
  row('F02: parley -o FILE saves the received text under another name if FILE.part is a FIFO (needs FIFOs)', {
    argv: [...streamArgv, '-o', 'a.txt'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'a.txt.part')]),
    script: broken,
    code: 8,
    err: ['the received data is saved as a.txt.part-2\n'],
    files: ['cwd/a.txt.part-2'],
  }),
  row('F20: parley exits with 11 at once if nothing reads the FIFO of -o (needs FIFOs)', {
    argv: [...streamArgv, '-o', 'pipe'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'pipe')]),
    code: 11,
    err: ['pipe: nobody reads this pipe'],
  }),
  row('F21: parley writes the answer into a FIFO that has a reader', {
    shell: 'mkfifo pipe; cat pipe > got & parley chat hi -o pipe && wait',
    script: respondWith(okResponse),
    code: 0,
    files: ['cwd/got'],
    check: ({ ending }) => expect(ending.files.get('cwd/got')).toBe(okOutput),
  }),
  row('F03: parley -o FILE does not write through a symbolic link named FILE.part (needs symbolic links)', {
    argv: [...streamArgv, '-o', 'a.txt'],
    prepare(folder) {
      writeFileSync(inCwd(folder, 'victim'), 'mine')
      symlinkSync('victim', inCwd(folder, 'a.txt.part'))
    },
    script: broken,
    code: 8,
    err: ['saved as a.txt.part-2\n'],
    files: ['cwd/a.txt.part-2', 'cwd/victim'],
    check: ({ ending }) => expect(ending.files.get('cwd/victim')).toBe('mine'),
  }),
])

const parseTurns = (text: string) => JSON.parse(text).contents.map(describeTurn)
const describeTurn = (turn: { role: string; parts: { text: string }[] }) =>
  `${turn.role}: ${turn.parts[0]?.text}`
const parseSentTurns = (request = '') => parseTurns(request.slice(request.indexOf('\r\n\r\n')))

/** Answers with the number of turns in the request, and the last turn. */
const echo =
  (wait = 0): Script =>
  (socket, request) => {
    const turns = parseSentTurns(request)
    setTimeout(() => socket.write(response(message(`${turns.length} ${turns.at(-1)}`))), wait)
  }

const writeThread = (text: string) => (folder: string) => writeFileSync(inCwd(folder, 't.json'), text)
const threadOf = (files: Map<string, string>) => files.get('cwd/t.json') ?? ''

/** Answers two requests after the second has arrived. */
function echoBothLate(): Script {
  const answers: (() => void)[] = []
  return (socket, request, count) => {
    answers.push(() => socket.write(response(message(`to ${parseSentTurns(request).at(-1)}`))))
    if (count === 2) for (const answer of answers) answer()
  }
}

testFaultsOnce('F: parley loses no turn of a conversation', [
  row('F10: six concurrent runs with one --thread file send all earlier turns, and no turn is lost', {
    shell: 'for i in 1 2 3 4 5 6; do parley chat "q$i" --thread t.json -q & done; wait',
    script: echo(50),
    code: 0,
    out: (out) => out.toString().split('\n').length === 7,
    reqs: 6,
    files: ['cwd/t.json'],
    check({ ending }) {
      const turns = parseTurns(threadOf(ending.files))
      expect(turns).toHaveLength(12)
      for (let i = 0; i < 12; i += 2) expect(turns[i + 1]).toBe(`model: ${i + 1} ${turns[i]}`)
      expect(new Set(turns).size).toBe(12)
    },
  }),
  row('F13: parley exits with 11 and adds nothing to a thread if it lost the lock while it was suspended', {
    shell: `parley chat one --thread t.json & one=$!
      until [ -e requested ]; do sleep 0.1; done; kill -STOP $one
      parley chat two --thread t.json -q; kill -CONT $one; wait $one`,

    // The answers arrive while the first run is suspended.
    script: echoBothLate(),
    during: async ({ cwd, waitUntil }, server) => {
      await waitUntil(() => server.requests.length > 0)
      writeFileSync(join(cwd, 'requested'), '')
    },
    code: 11,
    out: 'to user: two\nto user: one\n',
    reqs: 2,
    err: ['t.json: another parley process took over its lock; the received data is saved as '],
    files: ['cwd/requested', 'cwd/t.json'],
    check: ({ ending: { files } }) =>
      expect(parseTurns(threadOf(files))).toEqual(['user: two', 'model: to user: two']),
  }),
  row('F16: parley removes the lock file and does not change the thread if SIGINT ends the run', {
    argv: [...chatArgv, '--thread', 't.json'],
    prepare: writeThread('{"contents":[]}'),
    script: () => {},
    signal: { name: 'SIGINT', at: 'request' },
    code: 'SIGINT',
    files: ['cwd/t.json'],
    check: ({ ending }) => expect(threadOf(ending.files)).toBe('{"contents":[]}'),
  }),
])
