import type { Context } from '../../context.ts'
import { CliError, createNotSentDeadlineError, maxCountedProblems, usageError } from '../../errors.ts'
import { createServiceCaller } from '../../http/call.ts'
import { escapeControlsInJson, toOneLine } from '../../io/escape.ts'
import { ignoreClosedReader } from '../../io/output.ts'
import { formatTsvLine } from '../../io/tsv.ts'
import { readSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUseEvent } from '../../wire/sessions/session-event.ts'
import { listEventsOldestFirst } from '../listing/event-list.ts'
import { createPolicyPauser, type Policy, readPolicy } from '../policy/policy.ts'
import { type ParsedToolUse, parseToolUse } from '../policy/tool-use.ts'
import {
  describeDecider,
  describeJudgement,
  type Judgement,
  judgeToolUse,
  readToolFlags,
} from '../running/judgement.ts'
import { describeMissingPages, readRecordedEvents } from '../sending/input-events.ts'
import { createSessionRequestDefaults, type SessionOptions } from '../session.ts'
import { getToolUseFingerprint } from '../session-state.ts'
import { describeTool } from '../tool-use-summary.ts'

interface PolicyCheckOptions extends SessionOptions {
  tool?: string[]
  failOnDeny?: boolean
}

/**
 * Checks a policy file and prints its decision about each tool use of recorded events or of a session. With
 * `failOnDeny`, throws a `CliError` of kind `denied` if a tool use is not allowed.
 */
export async function checkPolicy(
  context: Context,
  options: PolicyCheckOptions,
  [file = '', events]: string[],
): Promise<void> {
  const { input, messages, host } = context
  const { session, tool, failOnDeny } = options
  const toolCommands = readToolFlags(tool)
  // Reading the settings sets the deadline, also for a check that sends no request.
  const settings = await readSettings(context)
  const policy = await readPolicy(await input.readText(file, 'the policy'), file)
  if (events === undefined && session === undefined) {
    const rules = policy.rules.length === 1 ? '1 rule' : `${policy.rules.length} rules`
    const isUnread = input.stdinKind === 'pipe' || input.stdinKind === 'file'
    const hint = isUnread ? "; stdin is not read: add '-' to check its events" : ''
    messages.note(`${file}: ${rules}, and all examples pass${hint}`)
    return
  }
  host.limitYoungGeneration?.(context.cleanups)
  const uses = new RecordedToolUses()
  if (events === undefined) {
    const parts = createSessionRequestDefaults(context, settings, options)
    const caller = createServiceCaller(context, settings)
    if (await caller.preview(endpoints.listEvents, { ...parts, query: 'order=asc' })) return
    for await (const items of listEventsOldestFirst(caller, parts)) for (const item of items) uses.add(item)
  } else await readRecordedEvents(input, events, uses)
  if (events !== undefined && uses.lacksPages) {
    const partial = describeMissingPages(events)
    // With `--fail-on-deny`, the exit code has to cover all tool uses.
    if (failOnDeny) throw usageError(partial)
    messages.warn(partial)
  }
  // Without events, `--fail-on-deny` would always succeed.
  if (uses.isEmpty) throw usageError(`${events ?? session} has no events to check the policy with`)
  // With `--fail-on-deny`, the exit code has to cover all tool uses, even if `| head` reads only some.
  const output = failOnDeny ? ignoreClosedReader(context.output) : context.output
  const { counts, problems } = await judgeAndPrint({ ...context, output }, { ...policy, toolCommands }, uses)
  const unallowed = counts.ask + counts.deny
  const count = counts.allow + unallowed
  if (count === 0) messages.note('the events contain no tool use')
  else if (host.stderr.isTerminal)
    messages.note(`tool uses: ${counts.allow} allowed, ${counts.ask} to ask about, ${counts.deny} denied`)
  if (failOnDeny && unallowed > 0)
    throw new CliError('denied', `${file} does not allow ${unallowed} of ${count} tool uses`, { problems })
}

/** Collects the tool uses of a session from its events. To save memory, stores only the source texts. */
class RecordedToolUses {
  readonly #texts = new Map<string, string>()
  readonly #contradicted = new Set<string>()
  isEmpty = true
  /** True if the list has another page after the last page of the input. */
  lacksPages = false

  addPage(hasNext: boolean): void {
    this.lacksPages = hasNext
  }

  add(item: EventItem): void {
    this.isEmpty = false
    if (!isToolUseEvent(item.event)) return
    const id = item.event.id ?? `#${this.#texts.size}`
    const earlier = this.#texts.get(id)
    const isEqual = earlier === undefined || earlier === item.text
    if (!isEqual && digestToolUse(earlier) !== digestToolUse(item.text)) this.#contradicted.add(id)
    this.#texts.set(id, item.text)
  }

  *[Symbol.iterator](): Generator<ParsedToolUse> {
    for (const [id, text] of this.#texts)
      yield parseToolUse(text, { isContradicted: this.#contradicted.has(id) })
  }
}

const digestToolUse = (text: string): string => getToolUseFingerprint(parseToolUse(text), text)

/** Number of tool uses in a page of the table. The first page determines the column widths. */
const pageSize = 100

/**
 * Minimum length of a written text, in UTF-16 units. Node copies shorter texts into shared buffers, which it
 * frees late.
 */
const minWrittenLength = 64 * 1024

async function judgeAndPrint(context: Context, given: Policy, uses: Iterable<ParsedToolUse>) {
  const { output, deadline } = context
  const pauser = createPolicyPauser(() => {
    if (deadline.hasPassed)
      throw createNotSentDeadlineError('the deadline passed while parley checked the policy')
  })
  const policy = { ...given, pauser }
  const layOut = await createLayout(context)
  const counts = { allow: 0, ask: 0, deny: 0 }
  const problems: string[] = []
  let page: Judgement[] = []
  let text = ''
  for (const use of uses) {
    const judgement = await judgeToolUse(use, policy)
    const { decision } = judgement
    counts[decision]++
    if (decision !== 'allow' && problems.length <= maxCountedProblems)
      problems.push(describeJudgement(judgement))
    if (page.push(judgement) < pageSize) continue
    text += layOut(page)
    page = []
    if (text.length < minWrittenLength) continue
    await output.write(text)
    // Node keeps a written text in memory until the event loop runs, so parley waits for the flush.
    await output.flush()
    text = ''
  }
  if (page.length > 0) text += layOut(page)
  await output.write(text)
  await output.flush()
  return { counts, problems }
}

async function createLayout(context: Context): Promise<(page: readonly Judgement[]) => string> {
  const { output, flags } = context
  if (output.isTerminal && !flags.raw) return createJudgementTable(context)
  const format = flags.raw ? toJsonLine : (each: Judgement) => formatTsvLine(toRow(each))
  const toShown = output.isTerminal ? escapeControlsInJson : String
  return (page) => toShown(page.map(format).join(''))
}

async function createJudgementTable({ host, messages }: Context) {
  const { createTableFormatter } = await import('../../io/columns.ts')
  const paints = {
    allow: messages.style.green,
    ask: messages.style.yellow,
    deny: messages.style.red,
  }
  const layOut = createTableFormatter({ width: host.stdout.columns || 80, limits: [8, 12, 24] })
  let head = [['DECISION', 'RULE', 'TOOL', 'INPUT']]
  return (page: readonly Judgement[]): string => {
    const rows = page.map((each) => {
      const reason = each.reason === undefined ? '' : ` (${toOneLine(each.reason, 200)})`
      return [each.decision, describeDecider(each), describeTool(each.use), `${each.use.inputText}${reason}`]
    })
    const lines = layOut([...head, ...rows])
    const titles = lines.splice(0, head.length).map((title) => messages.style.bold(title))
    head = []
    const painted = lines.map((line, index) => {
      const { decision, mismatchReason } = page[index] as Judgement
      const below =
        mismatchReason === undefined ? '' : `\n  ${messages.style.dim(toOneLine(mismatchReason, 500))}`
      return `${paints[decision](decision)}${line.slice(decision.length)}${below}`
    })
    return `${[...titles, ...painted].join('\n')}\n`
  }
}

const getReason = ({ reason, mismatchReason }: Judgement): string | undefined =>
  [reason, mismatchReason].filter((each) => each !== undefined).join('; ') || undefined

const toRow = (judgement: Judgement): string[] => {
  const { use, decision } = judgement
  return [decision, describeDecider(judgement), use.id, use.name, use.inputText, getReason(judgement) ?? '']
}

function toJsonLine(judgement: Judgement): string {
  const { use, decision, rule = null } = judgement
  const head = JSON.stringify({ toolUse: use.id, name: use.name }).slice(0, -1)
  const tail = JSON.stringify({ decision, rule, reason: getReason(judgement) ?? null }).slice(1)
  return `${head},"input":${use.inputText},${tail}\n`
}
