import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { getTemporaryPath, parleyPath, type TimedCommand } from './measure.ts'
import { type BenchRow, compare, createServerEnvironment } from './rows.ts'
import { slowAnswerMs } from './server.ts'

const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'

/** Writes a file with `count` prompts. Returns its path. */
function writePrompts(count: number): string {
  const file = getTemporaryPath(`prompts-${count}.ndjson`)
  const line = (_: unknown, at: number) => `{"id":"line ${at}","prompt":"Say hello to ${at}"}\n`
  writeFileSync(file, Array.from({ length: count }, line).join(''))
  return file
}

/** Writes a script that does only the necessary work, with an undici pool: read, request, parse and print. */
function writePool(url: string): string {
  const script = getTemporaryPath('pool.cjs')
  writeFileSync(
    script,
    `const { Pool } = require('${resolve('node_modules/undici')}')
    const lines = require('fs').readFileSync(process.argv[2], 'utf8').trim().split('\\n').map((line) => JSON.parse(line))
    const pool = new Pool('${url}', { connections: 16 })
    const headers = { authorization: 'Bearer t', 'content-type': 'application/json' }
    let next = 0
    async function work() {
      while (next < lines.length) {
        const { id, prompt } = lines[next++]
        const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt }] }] })
        const answer = await pool.request({ path: '${path}', method: 'POST', headers, body })
        const { content } = await answer.body.json()
        console.log(JSON.stringify({ id, text: content[0].text }))
      }
    }
    Promise.all(Array.from({ length: 16 }, work)).then(() => pool.close())`,
  )
  return script
}

/** Returns a pipeline that sends each prompt with its own curl, 16 at a time. */
const xargs = (url: string, prompts: string) => {
  const curl = `curl -s -H "Authorization: Bearer t" -H "Content-Type: application/json" -d @- ${url}${path}`
  const body = `jq -nc --arg text "$1" "{contents:[{role:\\"user\\",parts:[{text:\\$text}]}]}"`
  return `jq -r .prompt ${prompts} | tr '\\n' '\\0' | xargs -0 -P16 -n1 sh -c '${body} | ${curl} | jq -c .content' sh`
}

/** Creates the rows with many concurrent requests. */
export function createBatchRows(node: string, url: string): BenchRow[] {
  const [few, some, many] = [writePrompts(1000), writePrompts(20_000), writePrompts(100_000)]
  const env = createServerEnvironment(url)
  const batch = (file: string, more = ''): TimedCommand => ({
    command: `'${node}' '${parleyPath}' chat --batch ${file} --concurrency 16 -q ${more}`,
    env,
  })
  const done = getTemporaryPath('results.ndjson')
  const [slow, slots] = [2000, 64]
  const ideal = (Math.ceil(slow / slots) * slowAnswerMs) / 1000
  return [
    compare(
      ['1,000 chats, 16 at a time', batch(few)],
      ['`xargs -P16` of `curl` and `jq`', { command: xargs(url, few) }],
      { rounds: 1, budget: [0.05, 0.05], tools: ['curl', 'jq', 'xargs'] },
    ),
    compare(
      ['the same batch', batch(few)],
      ['a bare undici pool script', { command: `'${node}' ${writePool(url)} ${few}` }],
      { rounds: 7, budget: [1.6, 1.4] },
    ),
    compare(
      [
        '2,000 chats of 200 ms, 64 at a time',
        {
          command: `'${node}' '${parleyPath}' chat --batch ${writePrompts(slow)} --concurrency ${slots} -q`,
          env: { ...env, PARLEY_BASE_URL: `${url}/slow` },
        },
      ],
      [`the ideal, ${ideal} s`, { command: `sleep ${ideal}` }],
      { rounds: 3, budget: [1.1, 1.1] },
    ),
    compare(
      [
        'the memory of a batch of 100,000',
        { ...batch(many), command: `rm -f ${done}; ${batch(many, `--results ${done}`).command}` },
      ],
      ['that of 20,000', batch(some)],
      { rounds: 1, isMemory: true, budget: [1.2, 1.2], memory: 160 },
    ),
    compare(
      ['resuming a finished batch of 100,000', batch(many, `--results ${done} --resume`)],
      ['', batch(few)],
      { rounds: 3, seconds: 3 },
    ),
  ]
}
