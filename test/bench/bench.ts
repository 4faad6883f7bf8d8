import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { installNode } from '../harness/node.ts'
import { environment, measureMedians, measurePeakMiB } from './measure.ts'
import { type BenchRow, createRows } from './rows.ts'
import { startServer } from './server.ts'
import { formatTableLine, type MeasuredRow, replaceTable } from './table.ts'

const readme = 'src/README.md'

/** Returns the first line of a tool's version, or `undefined` if the tool is not installed. */
function findVersion(tool: string): string | undefined {
  try {
    return execFileSync(tool, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).split('\n', 1)[0]
  } catch {
    return undefined
  }
}

async function measureRow(row: BenchRow, major: number): Promise<MeasuredRow> {
  const { work, against, job, baseline, budget, seconds, memory = Infinity, tools = [] } = row
  const most = [
    ...(budget ? [[...new Set(budget)].map((each) => `${each} x`).join('; ')] : []),
    ...(seconds === undefined ? [] : [`${seconds} s`]),
    ...(memory === Infinity ? [] : [`${memory} MiB`]),
  ].join(', ')
  const result = (shown: string, brief: string, isOver: boolean) => ({
    work,
    against,
    most,
    shown,
    brief,
    isOver,
  })
  const absent = tools.filter((tool) => findVersion(tool) === undefined)
  if (absent.length > 0) return result(`skipped: no ${absent.join(', ')}`, '', false)
  const rounds = Math.min(row.rounds, Number(process.env.BENCH_ROUNDS ?? row.rounds))
  if (seconds !== undefined) {
    const [mine = 0] = await measureMedians([job], rounds)
    return result(`${(mine / 1000).toFixed(2)} s`, `${(mine / 1000).toFixed(1)} s`, mine / 1000 > seconds)
  }
  const used = memory === Infinity ? 0 : await measurePeakMiB(job)
  const [mine = 0, theirs = 0] = row.isMemory
    ? [used, await measurePeakMiB(baseline)]
    : await measureMedians([job, baseline], rounds)
  const ratio = mine / theirs
  const values = `${mine.toFixed(0)} / ${theirs.toFixed(0)} ${row.isMemory ? 'MiB' : 'ms'}`
  const memoryUse = used > 0 ? `; ${used.toFixed(0)} of ${memory} MiB` : ''
  const brief = `${ratio.toFixed(2)} x${used > 0 ? `, ${used.toFixed(0)}` : ''}`
  const isOver = ratio > (budget?.[major === 20 ? 0 : 1] ?? Infinity) || used > memory
  return result(`${ratio.toFixed(2)} x (${values})${memoryUse}`, brief, isOver)
}

/** `--write` writes the table into `src/README.md`. Other arguments are Node versions. */
const { values, positionals } = parseArgs({ allowPositionals: true, options: { write: { type: 'boolean' } } })
const [ownMajor = ''] = process.versions.node.split('.')
const server = await startServer()
Object.assign(environment, { PARLEY_BASE_URL: server.url, PARLEY_AGENTS_URL: server.url })
const tools = ['curl', 'jq', 'sed', 'base64'].map((tool) => findVersion(tool)?.split(' (')[0] ?? `no ${tool}`)
const date = new Date().toISOString().slice(0, 10)
const columns: { node: string; rows: MeasuredRow[] }[] = []
const failed: string[] = []
for (const major of positionals.length > 0 ? positionals : [ownMajor]) {
  const node = installNode(major)
  const version = findVersion(node) ?? major
  const rows: MeasuredRow[] = []
  console.log(`\nparley, ${date}, Node ${version}, ${cpus().length} CPUs`)
  console.log(`(${tools.join('; ')})\n`)
  console.log('| work | against | at most | measured | |\n|---|---|---|---|---|')
  for (const row of createRows(node, server.url)) {
    if (!row.work.includes(process.env.BENCH_ROW ?? '')) continue
    try {
      const measured = await measureRow(row, Number(version.slice(1, 3)))
      rows.push(measured)
      console.log(formatTableLine(measured))
      if (measured.isOver)
        failed.push(`${row.work} on ${version}: ${measured.shown}, at most ${measured.most}`)
    } catch (error) {
      console.log(`| ${row.work} | ${row.against} | failed: ${(error as Error).message.trim()} | | |`)
      failed.push(`${row.work} on ${version}: failed`)
    }
  }
  columns.push({ node: version.slice(1).split('.', 2).join('.'), rows })
}
server.close()
if (values.write) {
  const about = `${date}, with ${tools.slice(0, 2).join(' and ')}`
  writeFileSync(readme, replaceTable(readFileSync(readme, 'utf8'), { columns, about }))
}
if (failed.length > 0) {
  console.log(`\nover the budget:\n  ${failed.join('\n  ')}`)
  process.exitCode = 1
}
