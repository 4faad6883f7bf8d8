import { expect, test } from 'vitest'
import { parseResults } from '../batch/pieces.ts'
import { answerInOrder } from '../harness/responses.ts'
import { answering, message, readJson, run, temporaryFolder } from '../harness/run.ts'
import { piece } from './parts.ts'

const warning = 'the answer has \ufffd, which usually replaces bytes that are not UTF-8'

/** Replaces each `#` by a byte that is invalid in UTF-8. */
const damage = (text: string) =>
  Buffer.concat(text.split('#').flatMap((part, at) => [Buffer.from(at > 0 ? [0xff] : []), Buffer.from(part)]))

async function runBatch(argv: string[], ...bodies: (string | Uint8Array)[]) {
  const cwd = temporaryFolder({ in: bodies.map((_, at) => `"${at}"\n`).join('') })
  const exchange = answerInOrder(...bodies.map((body) => answering(body)))
  const flags = ['--batch', 'in', '--concurrency', '1', '-q', '--report', 'r.json']
  const ended = await run([...argv, ...flags], { cwd, exchange })
  return { ...ended, results: parseResults(ended.out), counts: readJson(cwd, 'r.json').counts }
}

test('a batch result has a warning if its answer has invalid UTF-8', async () => {
  const bodies = [message('fine'), damage(message('a#')), damage(message('b#'))]
  const { code, err, results, counts } = await runBatch(['chat'], ...bodies)
  expect({ code, err, counts }).toEqual({
    code: 0,
    counts: { total: 3, ok: 3, warned: 2, failed: 0, skipped: 0, notDone: 0 },
    err: expect.stringMatching(/^parley: 3 ok \(2 with a warning\) · [^\n]*\n$/),
  })
  expect(results.map((result) => [result.ok, result.text, result.warning])).toEqual([
    [true, 'fine', undefined],
    [true, 'a\ufffd', warning],
    [true, 'b\ufffd', warning],
  ])
})

test('a batch result has a warning if its answer was cut or filtered', async () => {
  const ends = ['MAX_TOKENS', 'SAFETY', 'STOP'].map((finishReason) => piece('Half', { finishReason }))
  const { results } = await runBatch(['chat'], ...ends)
  expect(results.map((result) => [result.stopReason, result.warning])).toEqual([
    ['MAX_TOKENS', 'the answer was cut at the output limit (--max-output-tokens)'],
    ['SAFETY', 'the answer was stopped: SAFETY'],
    ['STOP', undefined],
  ])
})
