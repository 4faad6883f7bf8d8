import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { message } from '../harness/run.ts'
import { response, type Script, type ScriptedServer } from '../harness/server.ts'
import { answering, delta, ok, okText, sseHead, stop } from './answers.ts'
import { chat, faultsOnce, type Row, stream } from './rows.ts'
import type { World } from './world.ts'

const broken = answering(`${sseHead}${delta('begun')}event: error\ndata: {"error":{"message":"gone"}}\n\n`)
const inCwd = (folder: string, name: string) => join(folder, 'cwd', name)
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Each answer in two halves, the second one when both requests have come. */
const interleaved = (): Script => {
  const waiting: (() => void)[] = []
  return (socket, _, count) => {
    const letter = count === 1 ? 'a' : 'b'
    socket.write(sseHead + delta(letter.repeat(1000)))
    waiting.push(() => socket.end(delta(letter.repeat(1000)) + stop))
    if (waiting.length === 2) for (const finish of waiting) finish()
  }
}

faultsOnce('Files of answers', [
  {
    name: 'F01: two runs with one -o: each answer is whole, and one of them stays',
    shell: 'run() { parley chat hi --stream -o a.txt; }; run & one=$!; run & wait $! && wait $one',
    script: interleaved(),
    code: 0,
    reqs: 2,
    files: ['cwd/a.txt'],
    check: ({ ending }) => expect(ending.files.get('cwd/a.txt')).toMatch(/^(a{2000}|b{2000})\n$/),
  },
  {
    name: 'F02: a FIFO in the place of FILE.part is not opened (needs FIFOs)',
    argv: [...stream, '-o', 'a.txt'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'a.txt.part')]),
    script: broken,
    code: 8,
    reqs: 1,
    err: ['the received data is saved as a.txt.part-2\n'],
    files: ['cwd/a.txt.part-2'],
  },
  {
    name: 'F20: a pipe that nobody reads is not waited for (needs FIFOs)',
    argv: [...stream, '-o', 'pipe'],
    prepare: (folder) => void spawnSync('mkfifo', [inCwd(folder, 'pipe')]),
    code: 11,
    err: ['pipe: nobody reads this pipe'],
  },
  {
    name: 'F21: a pipe that somebody reads takes the answer',
    shell: 'mkfifo pipe; cat pipe > got & parley chat hi -o pipe && wait',
    script: answering(ok),
    code: 0,
    reqs: 1,
    files: ['cwd/got'],
    check: ({ ending }) => expect(ending.files.get('cwd/got')).toBe(okText),
  },
  {
    name: 'F24: a pipe whose reader leaves before the answer comes',
    shell:
      'mkfifo pipe; (head -c 0; sleep 0.3) < pipe & parley chat hi -o pipe; cat "$TMPDIR"/parley-*.txt; rm "$TMPDIR"/parley-*.txt',
    script: (socket) => void setTimeout(() => socket.write(ok), 1000),
    code: 0,
    out: okText,
    reqs: 1,
    err: ['pipe: nothing reads it any more; the received data is saved as '],
  },
  {
    name: 'F22: one file for -o and --thread',
    argv: ['chat', 'hi', '-o', 'a.json', '--thread', './a.json'],
    code: 2,
    err: ['-o and --thread are the same file'],
  },
  {
    name: 'F23: an answer without text is no turn of a thread',
    argv: ['chat', 'hi', '--thread', 't.json'],
    script: answering(response(message(''))),
    code: 8,
    reqs: 1,
    err: ['the answer has no text; t.json was not created'],
  },
  {
    name: 'F03: a link in the place of FILE.part is not followed (needs symbolic links)',
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
    name: 'F04: an earlier part, and what the file was, stay',
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
    name: 'F05: a signal before any text leaves nothing',
    argv: [...stream, '-o', 'a.txt'],
    script: answering(sseHead),
    signal: { name: 'SIGTERM', at: 'request' },
    code: 'SIGTERM',
    reqs: 1,
    err: ['interrupted'],
  },
  {
    name: 'F06: a signal after some text keeps it, and says where',
    argv: [...stream, '-o', 'a.txt'],
    script: answering(sseHead + delta('begun')),
    signal: { name: 'SIGTERM', at: 'file' },
    code: 'SIGTERM',
    reqs: 1,
    err: ['the received data is saved as a.txt.part; the answer was cut off\n'],
    files: ['cwd/a.txt.part'],
  },
  {
    name: 'F07: with --errors json the place is in the one line',
    argv: [...stream, '-o', 'a.txt', '--errors', 'json'],
    script: broken,
    code: 8,
    reqs: 1,
    err: [/^\{"error":.*saved as a\.txt\.part.*\}\n$/],
    files: ['cwd/a.txt.part'],
  },
  {
    name: 'F08: a failure without any text leaves nothing',
    argv: [...chat, '-o', 'a.txt'],
    script: answering(response('{"content":[{"ty')),
    code: 8,
    reqs: 1,
  },
])

const kept = (text: string) => JSON.parse(text).contents.map(turnText)
const turnText = ({ role, parts }: { role: string; parts: { text: string }[] }) =>
  `${role}: ${parts[0]?.text}`
const sentBy = (request = '') => kept(request.slice(request.indexOf('\r\n\r\n')))

/** Says what was asked last, and how many turns it saw. */
const echo =
  (wait = 0): Script =>
  (socket, request) => {
    const turns = sentBy(request)
    setTimeout(() => socket.write(response(message(`${turns.length} ${turns.at(-1)}`))), wait)
  }

const hasThread = (text: string) => (folder: string) => writeFileSync(inCwd(folder, 't.json'), text)
const threadOf = (files: Map<string, string>) => files.get('cwd/t.json') ?? ''
async function firstRequest({ child }: World, { requests }: ScriptedServer): Promise<void> {
  while (requests.length === 0 && child.exitCode === null) await pause(20)
}

/** Answers the first request when the second one has come. */
function echoLate(): Script {
  const answers: (() => void)[] = []
  return (socket, request, count) => {
    answers.push(() => socket.write(response(message(`to ${sentBy(request).at(-1)}`))))
    if (count === 2) for (const answer of answers) answer()
  }
}

/** Before the answer comes, somebody writes to the thread what is no JSON. */
function breakingThread(): Pick<Row, 'script' | 'during'> {
  let answer = () => {}
  return {
    script: (socket) => {
      answer = () => socket.write(ok)
    },
    during: async (world, server) => {
      await firstRequest(world, server)
      writeFileSync(join(world.cwd, 't.json'), '{"mine')
      answer()
    },
  }
}

/** Answers the first request only when another run has waited for so many milliseconds more than it takes to say so. */
function answeringFirstAfter(milliseconds: number): Pick<Row, 'script' | 'during'> {
  let answer = () => {}
  return {
    script: (socket, request, count, requests) => {
      const write = () => echo()(socket, request, count, requests)
      if (count === 1) answer = write
      else write()
    },
    during: async (world) => {
      while (!world.err().includes('waiting for') && world.child.exitCode === null) await pause(20)
      await pause(milliseconds)
      answer()
    },
  }
}

faultsOnce('Conversations', [
  {
    name: 'F10: of many runs at once each sees the turns of those before, and none is lost',
    shell: 'for i in 1 2 3 4 5 6; do parley chat "q$i" --thread t.json -q & done; wait',
    script: echo(50),
    code: 0,
    out: (out) => out.toString().split('\n').length === 7,
    reqs: 6,
    files: ['cwd/t.json'],
    check({ ending }) {
      const turns = kept(threadOf(ending.files))
      expect(turns).toHaveLength(12)
      for (let i = 0; i < 12; i += 2) expect(turns[i + 1]).toBe(`model: ${i + 1} ${turns[i]}`)
      expect(new Set(turns).size).toBe(12)
    },
  },
  {
    name: 'F11: a lock that a killed run left behind does not block for ever',
    argv: [...chat, '--thread', 't.json'],
    prepare: (folder) => writeFileSync(inCwd(folder, 't.json.parley-lock'), ''),
    script: echo(),
    code: 0,
    out: '1 user: hi\n',
    reqs: 1,
    err: ['waiting for another parley that uses t.json'],
    files: ['cwd/t.json'],
    atLeast: 4,
  },
  {
    name: "F12: turns are kept, and what was in the file to the letter, but never one call's flags",
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
      expect(sentBy(server.requests[0])).toEqual(['user: a', 'user: hi', 'user: extra'])
      expect(kept(threadOf(ending.files))).toEqual(['user: a', 'user: hi', 'model: ok'])
      expect(threadOf(ending.files)).toMatch(
        /^\{ "z": 1\.50, "contents" : \[\{"role":"user","parts":\[\{"text":"a"\}\],"id":1e2\},.*\], "seed":1 \}$/s,
      )
    },
  },
  {
    name: 'F13: a run that was stopped for long, and taken for dead, adds its answer all the same',
    shell: `parley chat one --thread t.json & one=$!
      until [ -e asked ]; do sleep 0.1; done; kill -STOP $one
      parley chat two --thread t.json -q; kill -CONT $one; wait $one`,
    // The first answer comes while that run is stopped.
    script: echoLate(),
    during: async (world, server) => {
      await firstRequest(world, server)
      writeFileSync(join(world.cwd, 'asked'), '')
    },
    code: 0,
    out: 'to user: two\nto user: one\n',
    reqs: 2,
    files: ['cwd/asked', 'cwd/t.json'],
    check: ({ ending }) =>
      expect(kept(threadOf(ending.files))).toEqual([
        ...['user: two', 'model: to user: two'],
        ...['user: one', 'model: to user: one'],
      ]),
  },
  {
    name: 'F14: a file that was broken meanwhile is left, and the answer printed',
    argv: [...chat, '--thread', 't.json'],
    ...breakingThread(),
    code: 11,
    out: okText,
    reqs: 1,
    err: ['t.json: not valid JSON', 'the answer is not in the thread'],
    files: ['cwd/t.json'],
    check: ({ ending }) => expect(threadOf(ending.files)).toBe('{"mine'),
  },
  {
    name: 'F15: a preview makes no lock, and waits for none',
    argv: [...chat, '--thread', 't.json', '--dry-run'],
    prepare: (folder) => writeFileSync(inCwd(folder, 't.json.parley-lock'), ''),
    code: 0,
    out: (out) => out.includes('"contents"'),
    files: ['cwd/t.json.parley-lock'],
  },
  {
    name: 'F16: a signal takes the lock away, and leaves the thread as it was',
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
    name: 'F17: who waits for a living run waits no longer than --deadline, and sends nothing',
    shell: `parley chat one --thread t.json & until [ -e t.json.parley-lock ]; do sleep 0.1; done
      parley chat two --thread t.json --deadline 1; code=$?; kill %1; wait; exit $code`,
    script: () => {},
    code: 11,
    reqs: 1,
    err: [/has locked it: if none is running, remove \S+t\.json\.parley-lock\n {2}nothing was sent/],
  },
  {
    name: 'F18: without a deadline a conversation is waited for as long as it takes, whatever --timeout is',
    shell: `parley chat one --thread t.json -q & until [ -e t.json.parley-lock ]; do sleep 0.1; done
      parley chat two --thread t.json --timeout 3; code=$?; wait; exit $code`,
    ...answeringFirstAfter(2000),
    code: 0,
    out: '1 user: one\n3 user: two\n',
    reqs: 2,
    err: [/^parley: waiting for another parley that uses t\.json\n$/],
    files: ['cwd/t.json'],
  },
  {
    name: 'F18: without a deadline results are waited for as long as it takes',
    shell: `echo '"one"' > in; parley chat --batch in --results r -q > /dev/null &
      until [ -e r.parley-lock ]; do sleep 0.1; done
      parley chat --batch in --results r --resume > /dev/null; code=$?; wait; exit $code`,
    ...answeringFirstAfter(6000),
    code: 0,
    reqs: 1,
    err: [/^parley: waiting for another parley that uses r\nparley: \S/],
    files: ['cwd/in', 'cwd/r'],
    check: ({ ending }) => expect(ending.files.get('cwd/r')?.split('\n')).toHaveLength(2),
  },
  {
    name: 'F18: who waits for results waits no longer than --deadline, and sends nothing',
    shell: `echo '"one"' > in; parley chat --batch in --results r -q & until [ -e r.parley-lock ]; do sleep 0.1; done
      parley chat --batch in --results r --resume --deadline 1; code=$?; kill %1; wait; exit $code`,
    script: () => {},
    code: 11,
    reqs: 1,
    err: [/has locked it: if none is running, remove \S+r\.parley-lock\n {2}nothing was sent/],
    files: ['cwd/in'],
  },
])
