import { readFileSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { start } from '../harness/process.ts'
import { message, temporaryFolder } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'

const concurrency = 8
const maxRounds = 200

const argv = [
  ...['chat', '--batch', 'in.ndjson', '--results', 'results.ndjson', '--resume', '-q'],
  ...['--retries', '1', '--concurrency', String(concurrency)],
]

const refusal = (status: string) => response('{}', status, ['retry-after: 0'])

const answerCompletely = (socket: Socket, answer: Buffer) => socket.write(answer)

/** Reactions to a request. A random number of up to 1,000 selects the first reaction with a larger number. */
const reactions: [below: number, act: (socket: Socket, answer: Buffer) => void][] = [
  [900, answerCompletely],
  [940, (socket) => socket.write(response('{}', '500 Oops'))],
  [943, (socket) => socket.write(refusal('429 Slow'))],
  [945, (socket) => socket.write(refusal('503 Away'))],
  [970, (socket) => socket.resetAndDestroy()],
  [1000, (socket, answer) => socket.end(answer.subarray(0, -3))],
]

/**
 * Runs a batch, kills it at random times and resumes it until no line is left. Returns each violation: a line
 * without exactly one result, or more repeated answers than a kill can explain.
 */
export async function killAndResumeBatch(
  lines: number,
  kills: number,
  random: () => number,
): Promise<string[]> {
  const cwd = temporaryFolder()
  const input = Array.from(
    { length: lines },
    (_, at) => `{"id":"id-${at}","prompt":"line-${at} needs an answer"}\n`,
  )
  writeFileSync(join(cwd, 'in.ndjson'), input.join(''))
  /** Number of complete answers to each line. */
  const answers = new Map<string, number>()
  let onRequest = () => {}
  const server = await serve((socket, request) => {
    const line = /line-\d+/.exec(request)?.[0] ?? ''
    const number = random() * 1000
    const act = reactions.find(([below]) => number < below)?.[1] ?? answerCompletely
    if (act === answerCompletely) answers.set(line, (answers.get(line) ?? 0) + 1)
    act(socket, response(message(line)))
    onRequest()
  })

  const violations: string[] = []
  let killed = 0
  for (let round = 0; round < maxRounds && violations.length === 0; round++) {
    const { child, ended } = start(argv, { cwd, env: envFor(server) })
    let untilKill = round < kills ? Math.ceil(random() * (lines / kills)) : Infinity
    onRequest = () => {
      if (--untilKill === 0) child.kill('SIGKILL')
    }
    const { code, signal, err } = await ended
    if (code === 0) break
    if (signal) killed++
    // The first failed line got a 500 (7), a cut answer (8) or no answer (10).
    else if (![7, 8, 10].includes(code ?? 0)) violations.push(`exit ${code}: ${err}`)
  }
  await server.close()
  violations.push(...findWrongResults(readFileSync(join(cwd, 'results.ndjson'), 'utf8'), lines))
  // A kill loses at most the answers to the concurrent requests, and the next run repeats these requests.
  const twice = [...answers.values()].reduce((sum, times) => sum + times - 1, 0)
  if (twice > killed * concurrency) violations.push(`${twice} were answered twice after ${killed} kills`)
  const { length: requests } = server.requests
  process.stdout.write(
    `soak: ${lines} lines, ${requests} requests, ${killed} kills, ${twice} answered twice\n`,
  )
  return violations
}

function findWrongResults(text: string, lines: number): string[] {
  const results = text.split('\n')
  const wrong = results.pop() === '' ? [] : ['the last line is incomplete']
  const ok = new Map<string, number>()
  for (const line of results) {
    const { id, ok: isOk, text } = JSON.parse(line)
    if (!isOk) continue
    ok.set(id, (ok.get(id) ?? 0) + 1)
    if (text !== id.replace('id', 'line')) wrong.push(`${id} has the answer ${text}`)
  }
  for (let at = 0; at < lines; at++) {
    const times = ok.get(`id-${at}`) ?? 0
    if (times !== 1) wrong.push(`id-${at} is ok ${times} times`)
  }
  return wrong
}
