import { resolve } from 'node:path'
import { getTemporaryPath, writeTemporaryFile } from './measure.ts'
import { type BenchRow, chatPath, compare } from './rows.ts'
import { slowAnswerMs } from './server.ts'

/** Writes a file with `count` prompts. Returns its path. */
function writePrompts(count: number): string {
  const line = (_: unknown, at: number) => `{"id":"line ${at}","prompt":"Say hello to ${at}"}\n`
  return writeTemporaryFile(`prompts-${count}.ndjson`, Array.from({ length: count }, line).join(''))
}

/** Returns a script that does only the necessary work, with an undici pool: read, request, parse and print. */
const createPoolScript = (url: string) =>
  `const { Pool } = require('${resolve('node_modules/undici')}')
  const lines = require('fs').readFileSync(process.argv[2], 'utf8').trim().split('\\n').map((line) => JSON.parse(line))
  const pool = new Pool('${url}', { connections: 16 })
  const headers = { authorization: 'Bearer t', 'content-type': 'application/json' }
  let next = 0
  async function work() {
    while (next < lines.length) {
      const { id, prompt } = lines[next++]
      const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: prompt }] }] })
      const answer = await pool.request({ path: '${chatPath}', method: 'POST', headers, body })
      const { content } = await answer.body.json()
      console.log(JSON.stringify({ id, text: content[0].text }))
    }
  }
  Promise.all(Array.from({ length: 16 }, work)).then(() => pool.close())`

/** Returns a pipeline that sends each prompt with its own curl, 16 at a time. */
const xargs = (url: string, prompts: string) => {
  const curl = `curl -s -H "Authorization: Bearer t" -H "Content-Type: application/json" -d @- ${url}${chatPath}`
  const body = `jq -nc --arg text "$1" "{contents:[{role:\\"user\\",parts:[{text:\\$text}]}]}"`
  return `jq -r .prompt ${prompts} | tr '\\n' '\\0' | xargs -0 -P16 -n1 sh -c '${body} | ${curl} | jq -c .content' sh`
}

/** Creates the rows with many concurrent requests. */
export function createBatchRows(node: string, parley: string, url: string): BenchRow[] {
  const [few, some, slow, many] = [1000, 20_000, 2000, 100_000].map(writePrompts) as [
    string,
    string,
    string,
    string,
  ]
  const batch = (file: string, more = '--concurrency 16') => `${parley} chat -q --batch ${file} ${more}`
  const done = getTemporaryPath('results.ndjson')
  const resumable = `${batch(many)} --results ${done}`
  const ideal = (Math.ceil(2000 / 64) * slowAnswerMs) / 1000
  const pool = writeTemporaryFile('pool.cjs', createPoolScript(url))
  return [
    compare(['1,000 chats, 16 at a time', batch(few)], ['`xargs -P16` of `curl` and `jq`', xargs(url, few)], {
      rounds: 1,
      budget: [0.05, 0.05],
      tools: ['curl', 'jq', 'xargs'],
    }),
    compare(['the same batch', batch(few)], ['a bare undici pool script', `'${node}' ${pool} ${few}`], {
      rounds: 7,
      budget: [1.6, 1.4],
    }),
    compare(
      ['2,000 chats of 200 ms, 64 at a time', batch(slow, `--concurrency 64 --base-url ${url}/slow`)],
      [`the ideal, ${ideal} s`, `sleep ${ideal}`],
      { rounds: 3, budget: [1.1, 1.1] },
    ),
    compare(
      ['the memory of a batch of 100,000', `rm -f ${done}; ${resumable}`],
      ['that of 20,000', batch(some)],
      { rounds: 1, isMemory: true, budget: [1.2, 1.2], memory: 160 },
    ),
    compare(['resuming a finished batch of 100,000', `${resumable} --resume`], ['', ''], {
      rounds: 3,
      seconds: 3,
    }),
  ]
}
