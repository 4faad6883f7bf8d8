import { mkdirSync, writeFileSync } from 'node:fs'
import { createBatchRows } from './batch-rows.ts'
import { getTemporaryPath, parleyPath, type TimedCommand } from './measure.ts'
import { createSessionRows } from './session-rows.ts'

export interface BenchRow {
  work: string
  against: string
  job: TimedCommand
  baseline: TimedCommand
  rounds: number
  /** Maximum ratio, on Node 20 and on later versions. If omitted, the ratio is only reported. */
  budget?: [node20: number, later: number]
  /** Tools that the baseline needs. */
  tools?: string[]
  /** Maximum memory, in MiB. */
  memory?: number
  /** If true, the budget limits the ratio of the memory, not of the time. */
  isMemory?: true
  /** Maximum seconds, instead of a ratio. */
  seconds?: number
  /** The job is mostly Node's start, which depends on the environment. */
  isStart?: true
}

/** Returns a row that compares the time of a job with the time of its baseline. */
export const compare = (
  [work, job]: [string, TimedCommand],
  [against, baseline]: [string, TimedCommand],
  limits: Omit<BenchRow, 'work' | 'job' | 'against' | 'baseline'>,
): BenchRow => ({ work, against, job, baseline, ...limits })

const start = { isStart: true, rounds: 21 } as const

const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

/** Creates all rows of the section "Speed" in `src/README.md`, for one Node. */
export function createRows(node: string, url: string): BenchRow[] {
  const env = createServerEnvironment(url)
  const run = (argv: string): TimedCommand => ({ command: `'${node}' '${parleyPath}' ${argv}`, env })
  const nothing: TimedCommand = { command: `'${node}' -e 0` }
  // This check makes the shell start one more process, so the baseline has the check, too.
  const thenFine = '|| [ $? = 2 ]'
  const curl = `curl -sN -H 'Authorization: Bearer t' -H 'Content-Type: application/json' -d '${body}'`

  const bare = getTemporaryPath('bare.cjs')
  writeFileSync(
    bare,
    `const body = ${JSON.stringify(body)}
    const headers = { authorization: 'Bearer t', 'content-type': 'application/json', 'content-length': body.length }
    require('http').request('${url}${path}', { method: 'POST', headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk))
      response.on('end', () => console.log(JSON.parse(text).content[0].text))
    }).end(body)`,
  )
  const get = getTemporaryPath('get.cjs')
  writeFileSync(
    get,
    `const headers = { authorization: 'Bearer t' }
    require('http').get('${url}/large', { headers }, (response) => response.pipe(process.stdout))`,
  )
  const events = getTemporaryPath('events.ndjson')
  const event = (_: unknown, i: number) =>
    `{"type":"user.message","content":[{"type":"text","text":"event ${i}"}]}`
  writeFileSync(events, Array.from({ length: 10_000 }, event).join('\n'))
  const api = { command: `'${node}' '${parleyPath}' api gateway /large > ${getTemporaryPath('large')}`, env }
  const images = getTemporaryPath('images')
  mkdirSync(images, { recursive: true })
  const image = run(`image -m m 'a fox' --force -o ${images}/fox.png`)
  const imagePath = '/api/image/alpha/v1beta/models/m:generateContent'
  const bareImage = getTemporaryPath('image.cjs')
  writeFileSync(
    bareImage,
    `require('http').request('${url}${imagePath}', { method: 'POST' }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const { data } = JSON.parse(Buffer.concat(chunks)).candidates[0].content.parts[0].inlineData
        require('fs').writeFileSync('${images}/fox3.png', Buffer.from(data, 'base64'))
      })
    }).end('{}')`,
  )

  const words = getTemporaryPath('words.txt')
  return [
    compare(['`--version`', run('--version')], ['`node -e 0`', nothing], { ...start, budget: [1.15, 1.15] }),
    compare(['`--help`', run('--help')], ['`node -e 0`', nothing], { ...start, budget: [1.4, 1.35] }),
    compare(['`completion bash`', run('completion bash')], ['`--version`', run('--version')], {
      ...start,
      budget: [1.1, 1.1],
    }),
    compare(
      ['a usage error', run(`chat --nonsense ${thenFine}`)],
      ['`node -e 0`', { command: `${nothing.command} ${thenFine}` }],
      { ...start, budget: [1.4, 1.35] },
    ),
    compare(
      ['`chat`, one JSON answer with 28 headers', run("chat 'Say hello'")],
      ['a bare `http.request` script', { command: `'${node}' ${bare}` }],
      { ...start, budget: [1.6, 1.45] },
    ),
    compare(
      ['the same', run("chat 'Say hello'")],
      ['`curl \\| jq -r`', { command: `${curl} ${url}${path} | jq -r '.content[0].text'` }],
      { rounds: 11, tools: ['curl', 'jq'] },
    ),
    compare(
      ['500,000 stream events, text to a file', run(`chat --stream 'Say hello' -o ${words}`)],
      [
        '`curl -N \\| sed \\| jq -j`',
        {
          command: `${curl} '${url}${path}?alt=sse' | sed -n 's/^data: //p' | jq -j '.delta.text // empty' > ${getTemporaryPath('words2.txt')}`,
        },
      ],
      { rounds: 3, budget: [0.7, 0.6], memory: 110, tools: ['curl', 'sed', 'jq'] },
    ),
    compare(
      ['a 48 MiB image', image],
      [
        '`curl \\| jq -r \\| base64 -d`',
        {
          command: `${curl} ${url}${imagePath} | jq -r '.candidates[0].content.parts[0].inlineData.data' | base64 -d > ${images}/fox2.png`,
        },
      ],
      { rounds: 5, budget: [0.9, 0.9], memory: 160, tools: ['curl', 'jq', 'base64'] },
    ),
    compare(
      ['the same image', image],
      ['a bare script that parses, decodes and writes it', { command: `'${node}' ${bareImage}` }],
      { rounds: 5, budget: [1.3, 1.3] },
    ),
    compare(
      ['10,000 events from NDJSON, checked and sent', run(`events send -s s -q --ids -i ${events}`)],
      ['`jq -c` reading the same file', { command: `jq -c . ${events}` }],
      { rounds: 7, budget: [2.2, 2], tools: ['jq'] },
    ),
    ...createBatchRows(node, url),
    compare(
      ['`api`, a 200 MiB answer to a file', api],
      [
        'a bare `http.get`, piped to the file',
        { command: `'${node}' ${get} > ${getTemporaryPath('large2')}` },
      ],
      { rounds: 5, budget: [1.1, 1.1], memory: 100 },
    ),
    ...createSessionRows(node, url),
  ]
}

/** Returns the addresses and credentials of the server, as environment variables. */
export const createServerEnvironment = (url: string): Record<string, string> => ({
  PARLEY_BASE_URL: url,
  PARLEY_AGENTS_URL: url,
  PARLEY_ACCESS_TOKEN: 't',
  PARLEY_API_KEY: 'k',
})
