import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { message, temporaryFolder } from '../harness/run.ts'
import { response, type Script, serve } from '../harness/server.ts'
import { createJob, type GitHubJob, installedPackage, runGitHubJob } from './job.ts'

const { inputs, outputs, runs } = parse(
  readFileSync(join(import.meta.dirname, '../../.github/actions/ask/action.yml'), 'utf8'),
) as {
  inputs: Record<string, { default?: string }>
  outputs: Record<string, { value: string }>
  runs: GitHubJob
}

/** Runs the steps of the action as a runner does. */
async function runAction(given: Record<string, string>, answer: Script) {
  const server = await serve(answer)
  const own = { 'base-url': server.url, 'access-token': 't', package: installedPackage }
  const values: Record<string, string> = { ...own, ...given }
  const job = createJob({ RUNNER_TEMP: temporaryFolder() })
  const find = (name: string) => values[name] ?? inputs[name]?.default ?? ''
  const known = Object.keys(inputs).map((name) => [`inputs.${name}`, find(name)])
  const { codes, log } = await runGitHubJob(job, runs, Object.fromEntries(known))
  return { job, codes, log, requests: server.requests, written: job.read('step-output') }
}

test('each output of the GitHub action is an output of its step with the same name', () => {
  for (const [name, { value }] of Object.entries(outputs))
    expect(value).toBe(`\${{ steps.ask.outputs.${name} }}`)
})

test('the GitHub action passes its inputs as flags, and sets its outputs and the summary from the report (needs bash and jq)', async () => {
  const text = 'Hi</pre>\n::error::no'
  const prompt = '-Say $(touch evil) `touch evil`'
  const { job, codes, log, requests, written } = await runAction({ prompt, model: 'm/1' }, (socket) =>
    socket.end(response(message(text, { model: 'a\nexit=9', usage: { input_tokens: 3, output_tokens: 5 } }))),
  )
  expect(codes).toEqual([0, 0])
  const [, answer = ''] = /^answer=(.*)\nexit=0\nmodel=a exit=9\ntokens=8\n$/.exec(written) ?? []
  expect(readFileSync(answer, 'utf8')).toBe(`${text}\n`)
  expect(requests).toEqual([expect.stringContaining('/models/m%2F1:')])
  expect(requests[0]).toContain(JSON.stringify(prompt))
  expect(job.has('evil')).toBe(false)
  expect(log).not.toMatch(/^::/m)
  expect(job.read('step-summary')).toMatch(
    /^parley: exit 0, 8 tokens, [\d.]+ s\n\n<pre>\nHi&lt;\/pre&gt;\n::error::no\n\n<\/pre>\n$/,
  )
})

test('if parley fails, the GitHub action prints an annotation and still sets its outputs (needs bash and jq)', async () => {
  const { job, codes, log, written } = await runAction({ prompt: 'Say hello' }, (socket) =>
    socket.end(response('{"error":{"message":"no\\n::warning::such"}}', '401 No')),
  )
  expect(codes).toEqual([0, 3])
  expect(written).toBe('answer=\nexit=3\nmodel=alpha-2.5-pro\ntokens=\n')
  expect(log.match(/^::.*/gm)).toEqual([expect.stringMatching(/^::error title=.*401/)])
  expect(job.read('step-summary')).toMatch(/^parley: exit 3, \? tokens, [\d.]+ s\n\n$/)
})
