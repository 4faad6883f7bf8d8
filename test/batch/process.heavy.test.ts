import { readdirSync } from 'node:fs'
import type { Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { imageAnswer, inline, png } from '../gateway/image/image.ts'
import { execute, start } from '../harness/process.ts'
import { answering, message, readJson, readText, run } from '../harness/run.ts'
import { envFor, response, type Script, serve } from '../harness/server.ts'
import { batchFolder, parseResults, upTo } from './pieces.ts'

const answer = response(message('hi'))

/** Creates a folder with an input of this number of lines, and a server. */
async function prepare(count: number, script: Script) {
  const server = await serve(script)
  onTestFinished(() => server.close())
  const cwd = batchFolder(upTo(count).map((id) => `{"id":${id},"prompt":"p ${id} of it"}`))
  return { server, cwd, env: envFor(server) }
}

const idsIn = (text: string) => parseResults(text).map(({ id }) => Number(id))

const plain = ['chat', '--batch', 'in.ndjson', '--concurrency', '4']
const argv = [...plain, '--results', 'r.ndjson']
const resultsIn = (cwd: string) => idsIn(readText(cwd, 'r.ndjson'))

/** Starts a batch, answers four lines, and calls `act` while four more are running. */
async function interrupt(
  act: (kill: (signal: NodeJS.Signals) => void, answerAll: () => void) => void,
  count = 40,
) {
  const open: Socket[] = []
  const { cwd, env, server } = await prepare(count, (socket, _, requests) => {
    if (requests <= 4) return void socket.write(answer)
    open.push(socket)
    if (open.length !== 4) return
    const answerAll = () => {
      for (const each of open) each.write(answer)
    }
    act((signal) => child.kill(signal), answerAll)
  })
  const { child, ended } = start(argv, { cwd, env })
  return { ...(await ended), cwd, env, server }
}

test('after SIGINT, a batch finishes its running requests and then ends by SIGINT (needs signals)', async () => {
  const { signal, err, out, cwd, env, server } = await interrupt((kill, answerAll) => {
    kill('SIGINT')
    setTimeout(answerAll, 200)
  })
  expect([signal, server.requests.length]).toEqual(['SIGINT', 8])
  expect(err).toMatch(/^parley: finishing running requests; press Ctrl-C again to end at once\n/)
  expect(err).toMatch(
    /parley: interrupted: 8 ok · 0 failed · 32 not done .*; to resume: the same command with --resume\n$/,
  )
  expect([out, resultsIn(cwd).length]).toEqual(['', 8])
  // The lock file is removed too.
  expect(readdirSync(cwd).sort()).toEqual(['in.ndjson', 'r.ndjson'])
  server.sockets.clear()
  expect((await execute(['chat', '--batch', 'in.ndjson', '--dry-run'], { cwd, env })).code).toBe(0)
})

test('if all lines succeed after SIGINT, a batch ends like an uninterrupted batch (needs signals)', async () => {
  const { code, err } = await interrupt((kill, answerAll) => {
    kill('SIGINT')
    setTimeout(answerAll, 200)
  }, 8)
  expect(code, err).toBe(0)
  expect(err).toMatch(/\nparley: 8 ok · 0 failed · /)
})

test.each([
  ['one SIGTERM', 'SIGTERM'],
  ['two SIGINTs', 'SIGINT'],
] as const)('after %s, a batch ends at once with complete results (needs signals)', async (_, name) => {
  const { signal, err, cwd, out } = await interrupt((kill) => {
    kill(name)
    if (name === 'SIGINT') setTimeout(() => kill(name), 100)
  })
  expect(signal).toBe(name)
  expect(err).toMatch(/parley: interrupted: 4 ok .*; to resume: the same command with --resume\n$/)
  expect([out, resultsIn(cwd)]).toEqual(['', [1, 2, 3, 4]])
  expect(readdirSync(cwd).sort()).toEqual(['in.ndjson', 'r.ndjson'])
})

test('B15: a batch whose stdout is closed from the start exits with 11 and sends nothing (needs /proc)', async () => {
  const { cwd, env, server } = await prepare(3, (socket) => void socket.write(answer))
  const before = 'exec >&-'
  const closed = await execute(plain, { cwd, env, before })
  expect([closed.code, server.requests.length]).toEqual([11, 0])
  expect(closed.err).toMatch(
    /^parley: stdout: it was closed.*\n {2}nothing was sent\n {2}use --results FILE\n$/,
  )
  expect((await execute(argv, { cwd, env, before })).code).toBe(0)
  expect(resultsIn(cwd).toSorted()).toEqual([1, 2, 3])
  expect((await execute(plain, { cwd, env, before: 'exec >/dev/null' })).code).toBe(0)
})

// The kernel writes until the limit and then fails, as on a full disk.
test('a batch exits with 11 at a file size limit, and --resume requests only lines without a written result (needs prlimit)', async () => {
  const { cwd, env, server } = await prepare(40, (socket) => void socket.write(answer))
  const limited = [...argv, '--report', 'report.json']
  const full = await execute(limited, { cwd, env, within: ['prlimit', '--fsize=4096'] })
  expect(full.code).toBe(11)
  expect(full.err).toMatch(/parley: r\.ndjson: .*\n {2}results that could not be written are on stdout/)
  const written = resultsIn(cwd)
  expect(written.length).toBeGreaterThan(5)
  // Results that did not fit into the file are on stdout.
  const received = server.requests.length
  const { counts } = readJson(cwd, 'report.json')
  expect(counts).toMatchObject({ ok: received, failed: 0, notDone: 40 - received })
  expect(full.err).toContain(
    `parley: ${received} ok · 0 failed · ${received - written.length} of these saved elsewhere`,
  )
  const all = [...written, ...idsIn(full.out)].sort((one, other) => one - other)
  expect(all).toEqual(upTo(server.requests.length))
  expect((await execute([...argv, '--resume'], { cwd, env })).code).toBe(0)
  expect(resultsIn(cwd).sort((one, other) => one - other)).toEqual(upTo(40))
  // --resume requests only lines whose result was not written: at most the four that were running.
  expect(server.requests.length).toBeLessThanOrEqual(40 + 4)
})

test('B06: a batch lowers its concurrency and finishes if it gets few file descriptors (needs prlimit)', async () => {
  const body = response(imageAnswer(inline(png())))
  const { cwd, env } = await prepare(40, (socket) => void socket.write(body))
  const argv = ['image', '--batch', 'in.ndjson', '-o', 'pics/', '-m', 'm', '--concurrency', '32']
  for (const maxFiles of [28, 40]) {
    const { code, err } = await execute(argv, { cwd, env, within: ['prlimit', `--nofile=${maxFiles}`] })
    expect([maxFiles, code], err).toEqual([maxFiles, 0])
    expect(err).toMatch(/parley: .*too many files and connections are open/)
  }
})

test('B07: in a deleted folder, parley exits with 11 only if it needs a file there (needs POSIX files)', async () => {
  const before = 'mkdir gone && cd gone && rmdir ../gone'
  const demo = ' --profile demo --no-stdin'
  const runThere = (line: string) => execute(line.split(' '), { before })
  // Commands that need no file of the deleted folder work.
  for (const line of [`chat hi${demo}`, `events run hi -s s${demo}`, 'config list', 'help chat'])
    expect((await runThere(line)).code, line).toBe(0)
  const writing = ['chat hi -o x', 'chat hi --thread t', 'chat hi --report r.json', 'image hi -m m']
  for (const line of ['chat --batch b', 'chat hi -f x', 'events run hi -s s --audit a', ...writing]) {
    const { code, err } = await runThere(line + demo)
    expect([line, code], err).toEqual([line, 11])
    expect(err).toMatch(/parley: the current folder: no such file or folder; change to another folder/)
  }
})

test("after 1,000 lines, a batch limits V8's young generation until it ends", async () => {
  const cwd = batchFolder(Array(1001).fill('"x"'))
  const log: (number | string)[] = []
  let line = 0
  const exchange = answering(message('ok'))
  const { code } = await run(['chat', '--batch', 'in.ndjson', '--concurrency', '1'], {
    cwd,
    exchange(request, onSent) {
      if (++line >= 999) log.push(line)
      return exchange(request, onSent)
    },
    limitYoungGeneration(cleanups) {
      log.push('limited')
      cleanups.add(() => void log.push('free'))
    },
  })
  expect({ code, log }).toEqual({ code: 0, log: [999, 1000, 'limited', 1001, 'free'] })
})
