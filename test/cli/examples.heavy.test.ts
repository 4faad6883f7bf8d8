import { spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { png } from '../gateway/image/image.ts'
import { childEnvironment } from '../harness/environment.ts'
import { binary, type StartedEmulator, startEmulator } from '../harness/process.ts'
import { temporaryFolder } from '../harness/run.ts'
import { findFreePort } from '../harness/server.ts'
import { commandNames, findExamples, readHelp } from './pages.ts'

const event = '{"type":"user.message","content":[{"type":"text","text":"hi"}]}'

const cwd = temporaryFolder({
  ...{ 'notes.md': 'Notes', 'prompt.txt': 'Say hello', 'out.txt': 'out', 'token.txt': 'token' },
  'body.json': '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
  'events.json': '{"events":[{"type":"user.interrupt"}]}',
  'events.ndjson': event,
  'rules.json': '{"rules":[]}',
  'verdict.json': '{"type":"object","properties":{"verdict":{"type":"string"}}}',
  'audit.ndjson': '',
  'diagram.png': png(),
  parley: `#!/bin/sh\nexec "${process.execPath}" "${binary}" "$@"\n`,
})
let server: StartedEmulator
let env: Record<string, string> = {}

beforeAll(async () => {
  chmodSync(join(cwd, 'parley'), 0o755)
  spawnSync('sh', ['-c', 'git init -q && git add -N notes.md'], { cwd })
  server = await startEmulator()
  const PATH = `${cwd}:${process.env.PATH}`
  env = { ...childEnvironment, PATH, HOME: cwd, PARLEY_IMAGE_MODEL: 'painter', ...server.env }
})

afterAll(() => void server.child.kill())

const sh = (script: string) => spawnSync('sh', ['-c', script], { cwd, env, encoding: 'utf8', input: '' })

const send = 'parley events send -s sesn_1 --follow'

/** Examples that prompt a person. */
const prompting = /^parley config (init|delete work$)/

const names = [...commandNames.filter((name) => name !== 'serve'), 'settings', 'input', 'policy']
test.each(names)('every example of parley help %s runs as printed (needs sh)', async (name) => {
  // Scripts of topics run as a whole in `ci-topic.heavy.test.ts`.
  const [page = ''] = (await readHelp(name)).split('\n  set -eo pipefail')
  for (const example of findExamples(page)) {
    if (name === 'events confirm') sh(`${send} 'Use a tool'`)
    if (name === 'policy check') sh(`${send} hi; printf %s '${event}' > events.ndjson`)
    // The emulator accepts only replies to tool uses that wait.
    const waiting = example.includes('toolu_1') && sh(`${send} --interrupt 'Use a tool' --errors json`).stderr
    const [, id = ''] = /"pending":\["(\w+)"\]/.exec(waiting || '') ?? []
    const { status, stderr } = sh(example.replaceAll('toolu_1', id))
    // Without a terminal, a prompt is a usage error.
    expect(status, `${example}: ${stderr}`).toBe(prompting.test(example) ? 2 : 0)
    if (prompting.test(example)) expect(stderr).toContain('prompts on a terminal')
  }
})

test('the examples of parley help serve run as printed (needs sh)', async () => {
  const [serve = '', chat] = findExamples(await readHelp('serve'))
  expect(serve).toMatch(/&$/)
  const port = await findFreePort()
  const script = `${serve}\n${chat}\ncode=$?; kill $!; exit $code`.replaceAll('8080', `${port}`)
  const { status, stderr } = sh(script)
  expect(status, stderr).toBe(0)
})
