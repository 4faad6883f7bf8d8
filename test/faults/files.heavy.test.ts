import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response, type Script, type ScriptedServer } from '../harness/server.ts'
import { answering, delta, ok, okText, sseHead, stop } from './answers.ts'
import type { RunningCommand } from './launch.ts'
import { chat, faultsOnce, stream } from './rows.ts'

const broken = answering(`${sseHead}${delta('begun')}event: error\ndata: {"error":{"message":"gone"}}\n\n`)
const inCwd = (folder: string, name: string) => join(folder, 'cwd', name)
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Sends each answer in two halves, the second after both requests have arrived. */
const interleaved = (): Script => {
  const waiting: (() => void)[] = []
  return (socket, _, count) => {
    const letter = count === 1 ? 'a' : 'b'
    socket.write(sseHead + delta(letter.repeat(1000)))
    waiting.push(() => socket.end(delta(letter.repeat(1000)) + stop))
    if (waiting.length === 2) for (const finish of waiting) finish()
  }
}

faultsOnce('F: answer files', [
  {
    name: 'F01: parley keeps one whole answer if two runs write the same -o file',
    shell: 'run() { parley chat hi --stream -o a.txt; }; run & one=$!; run & wait $! && wait $one',
    script: interleaved(),
    code: 0,
    reqs: 2,
    files: ['cwd/a.txt'],
    check: ({ ending }) => expect(ending.files.get('cwd/a.txt')).toMatch(/^(a{2000}|b{2000})\n$/),
  },
  {
    name: 'F02: parley does not open a FIFO named FILE.part (needs FIFOs)',
    argv: [...stream, '-o', 'a.txt'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'a.txt.part')]),
    script: broken,
    code: 8,
    reqs: 1,
    err: ['the received data is saved as a.txt.part-2\n'],
    files: ['cwd/a.txt.part-2'],
  },
  {
    name: 'F20: parley exits with 11 at once if nothing reads the FIFO of -o (needs FIFOs)',
    argv: [...stream, '-o', 'pipe'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'pipe')]),
    code: 11,
    err: ['pipe: nobody reads this pipe'],
  },
  {
    name: 'F21: parley writes the answer into a FIFO that has a reader',
    shell: 'mkfifo pipe; cat pipe > got & parley chat hi -o pipe && wait',
    script: answering(ok),
    code: 0,
    reqs: 1,
    files: ['cwd/got'],
    check: ({ ending }) => expect(ending.files.get('cwd/got')).toBe(okText),
  },
  {
    name: 'F03: parley does not follow a symbolic link named FILE.part (needs symbolic links)',
    argv: [...stream, '-o', 'a.txt'],
    prepare(folder) {
      writeFileSync(inCwd(folder, 'victim'), 'mine')
      symlinkSync('victim', inCwd(folder, 'a.txt.part'))
    },
    script: broken,
    code: 8,
    reqs: 1,
    err: ['saved as a.txt.part-2\n'],
    files: ['cwd/a.txt.part-2', 'cwd/victim'],
    check: ({ ending }) => expect(ending.files.get('cwd/victim')).toBe('mine'),
  },
  {
    name: 'F04: parley keeps an earlier FILE.part and the old FILE',
    argv: [...stream, '-o', 'a.txt', '-q'],
    prepare(folder) {
      for (const name of ['a.txt', 'a.txt.part']) writeFileSync(inCwd(folder, name), 'old')
    },
    script: broken,
    code: 8,
    reqs: 1,
    err: ['saved as a.txt.part-2\n'],
    files: ['cwd/a.txt', 'cwd/a.txt.part', 'cwd/a.txt.part-2'],
    check: ({ ending }) => expect([...ending.files.values()]).toEqual(['old', 'old', 'begun']),
  },
  {
    name: 'F05: parley leaves no file if a signal precedes the first text',
    argv: [...stream, '-o', 'a.txt'],
    script: answering(sseHead),
    signal: { name: 'SIGTERM', at: 'request' },
    code: 'SIGTERM',
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'F06: parley keeps the received text and names its file if a signal follows',
    argv: [...stream, '-o', 'a.txt'],
    script: answering(sseHead + delta('begun')),
    signal: { name: 'SIGTERM', at: 'file' },
    code: 'SIGTERM',
    reqs: 1,
    err: ['the answer was cut off; the received data is saved as a.txt.part\n'],
    files: ['cwd/a.txt.part'],
  },
])

const parseTurns = (text: string) => JSON.parse(text).contents.map(describeTurn)
const describeTurn = ({ role, parts }: { role: string; parts: { text: string }[] }) =>
  `${role}: ${parts[0]?.text}`
const parseSentTurns = (request = '') => parseTurns(request.slice(request.indexOf('\r\n\r\n')))

/** Answers with the number of turns and the last turn of the request. */
const echo =
  (wait = 0): Script =>
  (socket, request) => {
    const turns = parseSentTurns(request)
    setTimeout(() => socket.write(response(message(`${turns.length} ${turns.at(-1)}`))), wait)
  }

const hasThread = (text: string) => (folder: string) => writeFileSync(inCwd(folder, 't.json'), text)
const threadOf = (files: Map<string, string>) => files.get('cwd/t.json') ?? ''
async function firstRequest({ child }: RunningCommand, { requests }: ScriptedServer): Promise<void> {
  while (requests.length === 0 && child.exitCode === null) await pause(20)
}

/** Answers both requests after the second has arrived. */
function echoLate(): Script {
  const answers: (() => void)[] = []
  return (socket, request, count) => {
    answers.push(() => socket.write(response(message(`to ${parseSentTurns(request).at(-1)}`))))
    if (count === 2) for (const answer of answers) answer()
  }
}

faultsOnce('F: conversations', [
  {
    name: 'F10: six concurrent runs of one --thread see all earlier turns, and lose none',
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
  },
  {
    name: 'F11: parley ignores the lock of a killed run after a few seconds',
    argv: [...chat, '--thread', 't.json'],
    prepare: (folder) => writeFileSync(inCwd(folder, 't.json.parley-lock'), ''),
    script: echo(),
    code: 0,
    out: '1 user: hi\n',
    reqs: 1,
    err: ['another parley locked t.json; waiting until it ends, or a few seconds if it was killed'],
    files: ['cwd/t.json'],
    atLeast: 4,
  },
  {
    name: 'F12: parley adds turns to a thread, keeps its other text unchanged, and saves no flags',
    argv: [
      ...[...chat, '--thread', 't.json', '--max-output-tokens', '7', '--stream', '--stream-via', 'body'],
      ...['--set', 'seed=9', '--set', 'contents[]={"role":"user","parts":[{"text":"extra"}]}'],
    ],
    prepare: hasThread(
      '{ "z": 1.50, "contents" : [{"role":"user","parts":[{"text":"a"}],"id":1e2}], "seed":1 }',
    ),
    script: answering(ok),
    code: 0,
    out: okText,
    reqs: 1,
    files: ['cwd/t.json'],
    check({ ending, server }) {
      expect(server.requests[0]).toContain('"maxOutputTokens"')
      expect(parseSentTurns(server.requests[0])).toEqual(['user: a', 'user: hi', 'user: extra'])
      expect(parseTurns(threadOf(ending.files))).toEqual(['user: a', 'user: hi', 'model: ok'])
      expect(threadOf(ending.files)).toMatch(
        /^\{ "z": 1\.50, "contents" : \[\{"role":"user","parts":\[\{"text":"a"\}\],"id":1e2\},.*\], "seed":1,"model":"alpha-2\.5-pro" \}$/s,
      )
    },
  },
  {
    name: 'F13: parley adds nothing to a thread if the run lost its lock file while it was suspended',
    shell: `parley chat one --thread t.json & one=$!
      until [ -e requested ]; do sleep 0.1; done; kill -STOP $one
      parley chat two --thread t.json -q; kill -CONT $one; wait $one`,
    // The answers arrive while the first run is stopped.
    script: echoLate(),
    during: async (command, server) => {
      await firstRequest(command, server)
      writeFileSync(join(command.cwd, 'requested'), '')
    },
    code: 11,
    out: 'to user: two\nto user: one\n',
    reqs: 2,
    err: ['t.json: another parley process took over its lock; the received data is saved as '],
    files: ['cwd/requested', 'cwd/t.json'],
    check: ({ ending }) =>
      expect(parseTurns(threadOf(ending.files))).toEqual(['user: two', 'model: to user: two']),
  },
  {
    name: 'F16: parley removes the lock and keeps the thread if SIGINT ends the run',
    argv: [...chat, '--thread', 't.json'],
    prepare: hasThread('{"contents":[]}'),
    script: () => {},
    signal: { name: 'SIGINT', at: 'request' },
    code: 'SIGINT',
    reqs: 1,
    files: ['cwd/t.json'],
    check: ({ ending }) => expect(threadOf(ending.files)).toBe('{"contents":[]}'),
  },
  {
    name: 'F17, F18: parley waits until --deadline while another run uses the conversation, and sends nothing',
    shell: `parley chat one --thread t.json & until [ -e t.json.parley-lock ]; do sleep 0.1; done
      parley chat two --thread t.json --deadline 1; code=$?; kill %1; wait; exit $code`,
    script: () => {},
    code: 11,
    reqs: 1,
    err: [/has locked it: if none is running, remove \S+t\.json\.parley-lock\n {2}nothing was sent/],
  },
])
