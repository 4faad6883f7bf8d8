import { resolve } from 'node:path'
import { createBatchRows } from './batch-rows.ts'
import { getTemporaryPath, writeTemporaryFile } from './measure.ts'
import { createSessionRows } from './session-rows.ts'

export interface BenchRow {
  work: string
  against: string
  /** Command lines of bash. */
  job: string
  baseline: string
  rounds: number
  /** Maximum ratio, on Node 20 and on later versions. */
  budget?: [node20: number, later: number]
  /** Tools that the baseline needs. */
  tools?: string[]
  /** Maximum memory, in MiB. */
  memory?: number
  /** If true, the budget limits the ratio of the memory, not of the time. */
  isMemory?: true
  /** Maximum seconds, instead of a ratio. */
  seconds?: number
}

/** Returns a row that compares the time of a job with the time of its baseline. */
export const compare = (
  [work, job]: [string, string],
  [against, baseline]: [string, string],
  limits: Omit<BenchRow, 'work' | 'job' | 'against' | 'baseline'>,
): BenchRow => ({ work, against, job, baseline, ...limits })

export const chatPath = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

/** Creates all rows of the section "Speed" in `src/README.md`, for one Node. */
export function createRows(node: string, url: string): BenchRow[] {
  const parley = `'${node}' '${resolve('bin/parley.cjs')}'`
  const compareStart = (
    work: string,
    argv: string,
    against: string,
    baseline: string,
    budget: [number, number],
  ) => compare([work, `${parley} ${argv}`], [against, baseline], { rounds: 21, budget })
  const [bareNode, nothing] = ['`node -e 0`', `'${node}' -e 0`]
  // This check makes the shell start one more process, so the baseline has the check, too.
  const thenFine = '|| [ $? = 2 ]'
  const curl = `curl -sN -H 'Authorization: Bearer t' -H 'Content-Type: application/json' -d '${body}'`
  const bare = writeTemporaryFile(
    'bare.cjs',
    `const body = ${JSON.stringify(body)}
    const headers = { authorization: 'Bearer t', 'content-type': 'application/json', 'content-length': body.length }
    require('http').request('${url}${chatPath}', { method: 'POST', headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk))
      response.on('end', () => console.log(JSON.parse(text).content[0].text))
    }).end(body)`,
  )
  const get = writeTemporaryFile(
    'get.cjs',
    `const headers = { authorization: 'Bearer t' }
    require('http').get('${url}/large', { headers }, (response) => response.pipe(process.stdout))`,
  )
  const events = writeTemporaryFile(
    'events.ndjson',
    '{"type":"user.message","content":[{"type":"text","text":"event"}]}\n'.repeat(10_000),
  )
  const [words, large, fox] = ['words.txt', 'large', 'fox.png'].map(getTemporaryPath)
  const image = `${parley} image -m m 'a fox' --force -o ${fox}`
  const imagePath = '/api/image/alpha/v1beta/models/m:generateContent'
  const bareImage = writeTemporaryFile(
    'image.cjs',
    `require('http').request('${url}${imagePath}', { method: 'POST' }, (response) => {
      const chunks = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () => {
        const { data } = JSON.parse(Buffer.concat(chunks)).candidates[0].content.parts[0].inlineData
        require('fs').writeFileSync('${fox}3.png', Buffer.from(data, 'base64'))
      })
    }).end('{}')`,
  )
  const printData = `jq -r '.candidates[0].content.parts[0].inlineData.data' | base64 -d`
  const printDeltas = `sed -n 's/^data: //p' | jq -j '.delta.text // empty'`

  return [
    compareStart('`--version`', '--version', bareNode, nothing, [1.15, 1.15]),
    compareStart('`--help`', '--help', bareNode, nothing, [1.4, 1.35]),
    compareStart('`completion bash`', 'completion bash', '`--version`', `${parley} --version`, [1.1, 1.1]),
    compareStart(
      'a usage error',
      `chat --nonsense ${thenFine}`,
      bareNode,
      `${nothing} ${thenFine}`,
      [1.4, 1.35],
    ),
    compareStart(
      '`chat`, one JSON answer with 28 headers',
      "chat 'Say hello'",
      'a bare `http.request` script',
      `'${node}' ${bare}`,
      [1.6, 1.45],
    ),
    compare(
      ['500,000 stream events, text to a file', `${parley} chat --stream 'Say hello' -o ${words}`],
      ['`curl -N \\| sed \\| jq -j`', `${curl} '${url}${chatPath}?alt=sse' | ${printDeltas} > ${words}2`],
      { rounds: 3, budget: [0.7, 0.6], memory: 110, tools: ['curl', 'sed', 'jq'] },
    ),
    compare(
      ['a 48 MiB image', image],
      ['`curl \\| jq -r \\| base64 -d`', `${curl} ${url}${imagePath} | ${printData} > ${fox}2.png`],
      { rounds: 5, budget: [0.9, 0.9], memory: 160, tools: ['curl', 'jq', 'base64'] },
    ),
    compare(
      ['the same image', image],
      ['a bare script that parses, decodes and writes it', `'${node}' ${bareImage}`],
      { rounds: 5, budget: [1.3, 1.3] },
    ),
    compare(
      ['10,000 events from NDJSON, checked and sent', `${parley} events send -s s -q --ids -i ${events}`],
      ['`jq -c` reading the same file', `jq -c . ${events}`],
      { rounds: 7, budget: [2.2, 2], tools: ['jq'] },
    ),
    ...createBatchRows(node, parley, url),
    compare(
      ['`api`, a 200 MiB answer to a file', `${parley} api gateway /large > ${large}`],
      ['a bare `http.get`, piped to the file', `'${node}' ${get} > ${large}2`],
      { rounds: 5, budget: [1.1, 1.1], memory: 100 },
    ),
    ...createSessionRows(parley),
  ]
}
