import { didYouMean } from '../../argv/spelling.ts'
import type { Context } from '../../context.ts'
import { CliError, usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import { createTable } from '../../io/columns.ts'
import { oneLine } from '../../io/escape.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { toTsv } from '../../io/tsv.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { isObject } from '../../wire/json/parse.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { createMatcher } from '../policy/pattern.ts'
import { type Decision, matches, type Policy, type Rule } from '../policy/policy.ts'
import { readPolicy } from '../policy/policy-file.ts'
import { deciderOf, describeJudgement, type Judgement, judge } from '../running/judgement.ts'
import { type SessionOptions, sessionParts } from '../session.ts'
import { createEventRecord, type RecordedUse, readRecordedUses } from './recorded-uses.ts'

export interface PolicyCheckOptions extends SessionOptions {
  failOnDeny?: boolean
}

/** What the policy says of a tool use, beside what became of it. */
interface Checked extends Judgement {
  was: RecordedUse['was']
}

/**
 * Checks a policy's file, and says what it would do about each tool use of a record, or of a session. Throws a `CliError`:
 * with `failOnDeny` one of kind `denied` if it would not allow all of them.
 */
export async function checkPolicy(
  context: Context,
  options: PolicyCheckOptions,
  words: string[],
): Promise<void> {
  const [file = '', events] = words
  const { input, note } = context
  if (events !== undefined && options.session !== undefined)
    throw usage('EVENTS and --session exclude each other')
  const policy = await readPolicy(await input.text(file, 'the policy'), file)
  if (events === undefined && options.session === undefined) requireNoUses(context, options)
  const uses =
    options.session !== undefined
      ? await askSession(context, options)
      : events !== undefined
        ? await readRecordedUses(await input.text(events, 'the events'), events === '-' ? 'stdin' : events)
        : undefined
  const rules = policy.rules.length === 1 ? '1 rule' : `${policy.rules.length} rules`
  if (!uses) {
    if (events === undefined && options.session === undefined)
      note(`${file}: ${rules}, and every example holds`)
    return
  }
  const checked = uses.map(({ use, was }): Checked => ({ ...judge(use, { policy, tools: new Map() }), was }))
  await print(context, checked)
  if (checked.length === 0) note('there is no tool use')
  else for (const line of idleRules(policy, uses)) note(line)
  if (context.host.stderr.isTerminal && checked.length > 0)
    note(`${describeCounts(checked)} of ${checked.length}`)
  const stopped = checked.filter(({ decision }) => decision !== 'allow')
  if (!options.failOnDeny || stopped.length === 0) return
  throw new CliError('denied', `${file} does not allow ${stopped.length} of ${checked.length} tool uses`, {
    problems: stopped.map(describeJudgement),
  })
}

function requireNoUses({ flags }: Context, { failOnDeny }: PolicyCheckOptions): void {
  const given = failOnDeny ? '--fail-on-deny' : flags.raw ? '--raw' : undefined
  if (given) throw usage(`${given} works only with EVENTS or --session`)
}

/** The tool uses of a session, as the service's list shows them; nothing if the request was only shown. */
async function askSession(context: Context, options: PolicyCheckOptions): Promise<RecordedUse[] | undefined> {
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const caller = createCaller(context, settings)
  if (await caller.preview(endpoints.listEvents, { ...parts, query: 'order=asc' })) return undefined
  const record = createEventRecord()
  for await (const items of listOldestFirst(caller, parts)) for (const item of items) record.add(item)
  return record.uses()
}

/** The rules that are about none of the tool uses. */
function idleRules({ rules }: Policy, uses: readonly RecordedUse[]): string[] {
  return rules.flatMap((rule, index) =>
    uses.some(({ use }) => matches(rule, use))
      ? []
      : [`rules[${index}] (${rule.tool}) matched nothing${whyIdle(rule, uses)}`],
  )
}

/** That a name is not there, with one that is: it may be misspelt. */
function whyIdle({ tool, fields = [] }: Rule, uses: readonly RecordedUse[]): string {
  const isNamed = createMatcher(tool, 'any')
  const named = uses.filter(({ use }) => isNamed(use.name))
  const names = new Set(uses.map(({ use }) => use.name))
  if (named.length === 0) return `: no tool use has that name${didYouMean(tool, [...names])}`
  const own = new Set(named.flatMap(({ use: { input } }) => (isObject(input) ? Object.keys(input) : [])))
  const missing = fields.find(({ path: [first] }) => typeof first === 'string' && !own.has(first))
  if (!missing) return ''
  const given = [...own].slice(0, mostNames).join(', ')
  return `: no input has '${missing.source}'${given === '' ? '' : `, but ${given}`}`
}

/** How many fields are named. */
const mostNames = 5

function describeCounts(checked: readonly Checked[]): string {
  const count = (wanted: Decision) => checked.filter(({ decision }) => decision === wanted).length
  return `${count('allow')} allowed, ${count('ask')} asked about, ${count('deny')} denied`
}

/** On a terminal a table, with `--raw` a line of JSON each, else a line of tab-separated fields each. */
async function print(context: Context, checked: readonly Checked[]): Promise<void> {
  const { output, flags, host, style } = context
  if (flags.raw) {
    const raw = createRawPrinter(output)
    for (const each of checked) raw.add(`${toJson(each)}\n`)
    await raw.write()
  } else if (!output.isTerminal) {
    await output.write(checked.map((each) => toTsv(toRow(each))).join(''))
  } else if (checked.length > 0) {
    const paints: Record<Decision, (text: string) => string> = {
      allow: style.green,
      ask: style.yellow,
      deny: style.red,
    }
    const layOut = createTable({ width: host.stdout.columns || 80, most: [8, 12, 8, 24] })
    const rows = checked.map((each) => {
      const { use, decision, reason, was = '' } = each
      const why = reason === undefined ? '' : ` (${oneLine(reason, 200)})`
      return [decision, deciderOf(each), was, use.name, `${use.inputText}${why}`]
    })
    const [head = '', ...lines] = layOut([['DECISION', 'RULE', 'WAS', 'TOOL', 'INPUT'], ...rows])
    const painted = lines.map((line, index) => {
      const { decision } = checked[index] as Checked
      return `${paints[decision](decision)}${line.slice(decision.length)}`
    })
    await output.write(`${[style.bold(head), ...painted].join('\n')}\n`)
  }
  await output.flush()
}

const toRow = (checked: Checked): string[] => {
  const { use, decision, reason = '', was = '' } = checked
  return [decision, deciderOf(checked), was, use.id, use.name, use.inputText, reason]
}

/** The input as it is spelled. */
function toJson({ use, decision, rule, reason, was }: Checked): string {
  const head = JSON.stringify({ toolUse: use.id, name: use.name }).slice(0, -1)
  const tail = { decision, rule: rule ?? null, reason: reason ?? null, was: was ?? null }
  return `${head},"input":${use.inputText},${JSON.stringify(tail).slice(1)}`
}
