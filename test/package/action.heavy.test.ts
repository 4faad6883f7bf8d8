import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { pack } from '../harness/npm.ts'
import { message, temporaryFolder } from '../harness/run.ts'
import { response, type Script, serve } from '../harness/server.ts'

interface Action {
  inputs: Record<string, { default?: string }>
  outputs: Record<string, { value: string }>
  runs: { steps: { id?: string; shell: string; env: Record<string, string>; run: string }[] }
}

const action: Action = parse(
  readFileSync(join(import.meta.dirname, '../../.github/actions/ask/action.yml'), 'utf8'),
)

let tarball = ''
beforeAll(() => {
  tarball = pack(temporaryFolder())
})

/** Runs the steps of the action as a runner does. */
async function runAction(inputs: Record<string, string>, answer: Script) {
  const folder = temporaryFolder()
  const [temporary, prefix] = [join(folder, 'temp'), join(folder, 'prefix')]
  const [output, summary] = [join(folder, 'output'), join(folder, 'summary')]
  for (const made of [temporary, prefix]) mkdirSync(made)
  writeFileSync(join(folder, 'a b.txt'), 'text of a file')
  const server = await serve(answer)
  const given: Record<string, string> = {
    'base-url': server.url,
    'access-token': 't',
    package: tarball,
    ...inputs,
  }
  const ended = { code: 0, out: '', err: '', requests: server.requests }
  for (const { shell, env, run } of action.runs.steps) {
    expect(shell).toBe('bash')
    const script = join(folder, 'script.sh')
    writeFileSync(script, run)
    const values = Object.entries(env).map(([name, value]) => [
      name,
      value.replace(
        /\$\{\{ inputs\.([\w-]+) \}\}/g,
        (_, input) => given[input] ?? action.inputs[input]?.default ?? '',
      ),
    ])
    const {
      code = 0,
      stdout,
      stderr,
    } = await promisify(execFile)('bash', ['--noprofile', '--norc', '-eo', 'pipefail', script], {
      cwd: folder,
      env: {
        ...process.env,
        ...Object.fromEntries(values),
        PATH: `${join(prefix, 'bin')}:${process.env.PATH}`,
        npm_config_prefix: prefix,
        npm_config_offline: 'true',
        RUNNER_TEMP: temporary,
        GITHUB_OUTPUT: output,
        GITHUB_STEP_SUMMARY: summary,
      },
    }).catch((error) => error)
    Object.assign(ended, { code, out: ended.out + stdout, err: ended.err + stderr })
    if (code !== 0) break
  }
  await server.close()
  const lines = existsSync(output) ? readFileSync(output, 'utf8').trimEnd().split('\n') : []
  const outputs = new Map(lines.map((line) => line.split(/=(.*)/s, 2) as [string, string]))
  return {
    ...ended,
    folder,
    outputs: Object.fromEntries(
      Object.entries(action.outputs).map(([name, { value }]) => [
        name,
        outputs.get(/^\$\{\{ steps\.ask\.outputs\.(\w+) \}\}$/.exec(value)?.[1] ?? ''),
      ]),
    ),
    count: lines.length,
    summary: existsSync(summary) ? readFileSync(summary, 'utf8') : '',
  }
}

test('the GitHub action passes its inputs as flags, and sets its outputs and the summary from the report (needs bash and jq)', async () => {
  const text = 'Hi</pre>\n::error::no'
  const ended = await runAction({ prompt: '-Say $(touch evil) `touch evil`', model: 'm/1' }, (socket) =>
    socket.end(response(message(text, { model: 'a\nexit=9', usage: { input_tokens: 3, output_tokens: 5 } }))),
  )
  expect(ended).toMatchObject({ code: 0, count: 4, outputs: { exit: '0', model: 'a exit=9', tokens: '8' } })
  expect(readFileSync(ended.outputs.answer ?? '', 'utf8')).toBe(`${text}\n`)
  expect(ended.requests).toHaveLength(1)
  expect(ended.requests[0]).toContain('/models/m%2F1:')
  expect(ended.requests[0]).toContain(JSON.stringify('-Say $(touch evil) `touch evil`'))
  expect(existsSync(join(ended.folder, 'evil'))).toBe(false)
  expect(ended.out + ended.err).not.toMatch(/^::/m)
  expect(ended.summary).toMatch(
    /^parley: exit 0, 8 tokens, [\d.]+ s\n\n<pre>\nHi&lt;\/pre&gt;\n::error::no\n\n<\/pre>\n$/,
  )
})

test('if parley fails, the GitHub action prints an annotation and still sets its outputs (needs bash and jq)', async () => {
  const ended = await runAction({ prompt: 'Say hello' }, (socket) =>
    socket.end(response('{"error":{"message":"no\\n::warning::such"}}', '401 No')),
  )
  expect(ended).toMatchObject({
    code: 3,
    count: 4,
    outputs: { answer: '', exit: '3', model: 'alpha-2.5-pro', tokens: '' },
  })
  expect(ended.err.match(/^::.*/gm)).toEqual([expect.stringMatching(/^::error title=.*401/)])
  expect(ended.summary).toMatch(/^parley: exit 3, \? tokens, [\d.]+ s\n\n$/)
})
