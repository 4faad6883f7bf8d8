import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { installNode } from '../harness/node.ts'
import { measureMedians, measurePeakMiB, slowVariables, withoutSlowVariables } from './measure.ts'
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
  const { work, against, budget, seconds, memory = Infinity, tools = [] } = row
  const column = major === 20 ? 0 : 1
  const most = [
    ...(budget ? [[...new Set(budget)].map((each) => `${each} x`).join('; ')] : []),
    ...(seconds === undefined ? [] : [`${seconds} s`]),
    ...(memory === Infinity ? [] : [`${memory.toFixed(0)} MiB`]),
  ].join(', ')
  const about = { work, against, most }
  const result = (shown: string, brief: string, isOver: boolean) => ({ ...about, shown, brief, isOver })
  const absent = tools.filter((tool) => findVersion(tool) === undefined)
  if (absent.length > 0) return result(`skipped: no ${absent.join(', ')}`, '', false)
  const isOver = (ratio: number, used: number) => ratio > (budget?.[column] ?? Infinity) || used > memory
  const { job, baseline, isStart } = row
  const rounds = Math.min(row.rounds, Number(process.env.BENCH_ROUNDS ?? row.rounds))
  if (row.isMemory) {
    const [mine, theirs] = [await measurePeakMiB(job), await measurePeakMiB(baseline)]
    const shown = `${(mine / theirs).toFixed(2)} x (${mine.toFixed(0)} / ${theirs.toFixed(0)} MiB)`
    return result(shown, `${(mine / theirs).toFixed(2)} x, ${mine.toFixed(0)}`, isOver(mine / theirs, mine))
  }
  if (seconds !== undefined) {
    const [mine = 0] = await measureMedians([job], rounds)
    return result(`${(mine / 1000).toFixed(2)} s`, `${(mine / 1000).toFixed(1)} s`, mine / 1000 > seconds)
  }
  const jobs = [job, baseline]
  if (isStart && slowVariables.length > 0)
    jobs.push(withoutSlowVariables(job), withoutSlowVariables(baseline))
  const [mine = 0, theirs = 0, mineBare, theirsBare] = await measureMedians(jobs, rounds)
  const used = memory === Infinity ? 0 : await measurePeakMiB(job)
  const shown = [
    describe(mine, theirs),
    ...(mineBare && theirsBare
      ? [`without ${slowVariables.join(', ')} ${describe(mineBare, theirsBare)}`]
      : []),
    ...(used > 0 ? [`${used.toFixed(0)} of ${memory.toFixed(0)} MiB`] : []),
  ].join('; ')
  const brief = `${(mine / theirs).toFixed(2)} x${used > 0 ? `, ${used.toFixed(0)}` : ''}`
  return result(shown, brief, isOver(mine / theirs, used))
}

const describe = (mine: number, theirs: number) =>
  `${(mine / theirs).toFixed(2)} x (${mine.toFixed(0)} / ${theirs.toFixed(0)} ms)`

/** `--write` writes the table into `src/README.md`. Other arguments are Node versions. */
const { values, positionals } = parseArgs({ allowPositionals: true, options: { write: { type: 'boolean' } } })
const [ownMajor = ''] = process.versions.node.split('.')
const server = await startServer()
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
