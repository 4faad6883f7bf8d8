import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { findNode } from '../harness/node.ts'
import { measureInside } from './inside.ts'
import { burdens, compare, parley, peak, unburdened } from './measure.ts'
import { explainRun } from './profile.ts'
import { createRows, credentials, type Row } from './rows.ts'
import { startServer } from './server.ts'

/** The first line that a tool prints of its version, or `undefined` where there is no such tool. */
function versionOf(tool: string): string | undefined {
  try {
    return execFileSync(tool, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).split('\n', 1)[0]
  } catch {
    return undefined
  }
}

async function measureRow(row: Row, major: number): Promise<string> {
  const { work, against, job, baseline, rounds, budget, tools = [], memory = Infinity, isStart } = row
  const absent = tools.filter((tool) => versionOf(tool) === undefined)
  if (absent.length > 0) return `| ${work} | ${against} | skipped: no ${absent.join(', ')} | | |`

  if (row.isMemory) return measureMemory(row, major)
  if (row.seconds !== undefined) return measureSeconds(row, row.seconds)
  const jobs = [job, baseline]
  if (isStart && burdens.length > 0) jobs.push(unburdened(job), unburdened(baseline))
  const [mine, theirs, mineBare, theirsBare] = (await compare(jobs, rounds)) as [
    number,
    number,
    number?,
    number?,
  ]
  const most = budget?.[major === 20 ? 0 : 1]
  const used = memory === Infinity ? 0 : await peak(job)
  const measured = [
    describe(mine, theirs),
    ...(mineBare && theirsBare ? [`without ${burdens.join(', ')} ${describe(mineBare, theirsBare)}`] : []),
    ...(used > 0 ? [`${used.toFixed(0)} of ${memory.toFixed(0)} MiB`] : []),
  ]
  const isOver = mine / theirs > (most ?? Infinity) || used > memory
  const verdict = most === undefined ? '' : isOver ? '**over**' : 'ok'
  return `| ${work} | ${against} | ${most === undefined ? 'reported' : `${most} x`} | ${measured.join('; ')} | ${verdict} |`
}

async function measureMemory(
  { work, against, job, baseline, budget, memory = Infinity }: Row,
  major: number,
) {
  const [mine, theirs] = [await peak(job), await peak(baseline)]
  const most = budget?.[major === 20 ? 0 : 1] ?? Infinity
  const verdict = mine / theirs > most || mine > memory ? '**over**' : 'ok'
  const measured = `${(mine / theirs).toFixed(2)} x (${mine.toFixed(0)} / ${theirs.toFixed(0)} MiB)`
  return `| ${work} | ${against} | ${most} x, ${memory} MiB | ${measured} | ${verdict} |`
}

async function measureSeconds({ work, against, job, rounds }: Row, most: number) {
  const [mine = 0] = await compare([job], rounds)
  const verdict = mine / 1000 > most ? '**over**' : 'ok'
  return `| ${work} | ${against} | ${most} s | ${(mine / 1000).toFixed(2)} s | ${verdict} |`
}

const describe = (mine: number, theirs: number) =>
  `${(mine / theirs).toFixed(2)} x (${mine.toFixed(0)} / ${theirs.toFixed(0)} ms)`

const [ownMajor = ''] = process.versions.node.split('.')
const majors = process.argv.length > 2 ? process.argv.slice(2) : [ownMajor]
const server = await startServer()
for (const major of majors) {
  const node = findNode(major)
  const versions = ['curl', 'jq', 'sed', 'base64'].map((tool) => versionOf(tool) ?? `no ${tool}`)
  console.log(
    `\nparley, ${new Date().toISOString().slice(0, 10)}, Node ${versionOf(node)}, ${cpus().length} CPUs`,
  )
  console.log(`(${versions.map((version) => version.split(' (')[0]).join('; ')})\n`)
  console.log('| work | against | at most | measured | |\n|---|---|---|---|---|')
  for (const row of createRows(node, server)) {
    if (!row.work.includes(process.env.BENCH_ROW ?? '')) continue
    const failed = (error: Error) => `| ${row.work} | ${row.against} | failed: ${error.message.trim()} | | |`
    console.log(await measureRow(row, Number(major)).catch(failed))
  }
  if (major === ownMajor && !process.env.BENCH_ROW) for (const row of await measureInside()) console.log(row)
  if (!process.env.BENCH_ROW)
    console.log(`\n${await explainRun(node, `'${parley}' chat 'Say hello'`, credentials(server.url))}`)
}
server.close()
