import type { Context } from '../../context.ts'
import { CliError, mostCounted, tooLate, usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import { createTable } from '../../io/columns.ts'
import { escapeJson, oneLine } from '../../io/escape.ts'
import { letSignalsCome } from '../../io/input.ts'
import { toTsv } from '../../io/tsv.ts'
import { readSettings } from '../../settings/read-settings.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { createPace, type Decision, matches, type Pace, type Policy, type Rule } from '../policy/policy.ts'
import { readPolicy } from '../policy/policy-file.ts'
import {
  deciderOf,
  describeJudgement,
  type Judgement,
  judge,
  readUse,
  type Use,
} from '../running/judgement.ts'
import { readGiven, recordedEvents } from '../sending/given-events.ts'
import { type SessionOptions, sessionParts } from '../session.ts'
import { isToolUse, SessionState } from '../session-state.ts'

export interface PolicyCheckOptions extends SessionOptions {
  failOnDeny?: boolean
}

/**
 * Checks a policy's file, and says what it would do about each tool use of a record, or of a session. Throws a `CliError`:
 * with `failOnDeny` one of kind `denied` if it would not allow all of them.
 */
export async function checkPolicy(
  context: Context,
  options: PolicyCheckOptions,
  [file = '', events]: string[],
): Promise<void> {
  const { input, note, flags, host, limit, timers } = context
  const { session, failOnDeny } = options
  if (events !== undefined && session !== undefined) throw usage('EVENTS and --session exclude each other')
  const policy = await readPolicy(await input.text(file, 'the policy'), file)
  if (events === undefined && session === undefined) {
    const unused = failOnDeny ? '--fail-on-deny' : flags.raw ? '--raw' : undefined
    if (unused) throw usage(`${unused} works only with EVENTS or --session`)
    const rules = policy.rules.length === 1 ? '1 rule' : `${policy.rules.length} rules`
    note(`${file}: ${rules}, and every example holds`)
    return
  }
  if (host.holdMemory) context.cleanups.add(host.holdMemory())
  // The deadline is one of them.
  const settings = await readSettings(context)
  const uses = new RecordedUses()
  if (events !== undefined) {
    const given = await readGiven(input, events, { hint: 'a record is events as JSON' })
    for (const item of recordedEvents(given)) uses.add(item)
  } else if (!(await addListed(uses, context, settings, options))) return
  // Else a check of nothing would be a good one.
  if (uses.isEmpty) throw usage('there is no event to check the policy on')
  const pace = createPace(async () => {
    await letSignalsCome()
    if (timers.now() >= limit.deadline) throw tooLate('the deadline passed while the policy was checked')
  })
  const check = new Check(policy, pace)
  await print(context, check.judgeAll(uses))
  if (check.count === 0) note('there is no tool use')
  else for (const line of check.describeIdle()) note(line)
  if (host.stderr.isTerminal && check.count > 0) note(check.describeCounts())
  if (failOnDeny && check.stopped > 0)
    throw new CliError('denied', `${file} does not allow ${check.stopped} of ${check.count} tool uses`, {
      problems: check.problems,
    })
}

/** Adds what the service's list shows. Returns false if the request was only shown. */
async function addListed(
  uses: RecordedUses,
  context: Context,
  settings: ResolvedSettings,
  options: PolicyCheckOptions,
): Promise<boolean> {
  const parts = sessionParts(context, settings, options)
  const caller = createCaller(context, settings)
  if (await caller.preview(endpoints.listEvents, { ...parts, query: 'order=asc' })) return false
  for await (const items of listOldestFirst(caller, parts)) for (const item of items) uses.add(item)
  return true
}

/** The tool uses of a session's events, which are added in their order. Keeps no more of each than its text. */
class RecordedUses {
  readonly #texts = new Map<string, string>()
  readonly #contradicted = new Set<string>()
  isEmpty = true

  add(item: EventItem): void {
    this.isEmpty = false
    if (!isToolUse(item.event)) return
    const key = item.event.id ?? `#${this.#texts.size}`
    const earlier = this.#texts.get(key)
    if (earlier !== undefined && !isSame(earlier, item)) this.#contradicted.add(key)
    this.#texts.set(key, item.text)
  }

  *[Symbol.iterator](): Generator<Use> {
    for (const [key, text] of this.#texts) {
      const { id = '', type } = SessionEvent.parse(JSON.parse(text))
      const use = readUse({ id, type, text, isContradicted: this.#contradicted.has(key) })
      if (use) yield use
    }
  }
}

/** Whether two events show one tool use: a session says so of those that have one id. */
function isSame(earlier: string, { event, text }: EventItem): boolean {
  if (earlier === text) return true
  const state = new SessionState()
  state.add(SessionEvent.parse(JSON.parse(earlier)), earlier)
  return !state.addAgain(event, text)
}

/** A policy on many tool uses. Keeps counts and names of what it has judged, and no tool use. */
class Check {
  readonly #policy: Policy
  readonly #pace: Pace
  readonly #counts = { allow: 0, ask: 0, deny: 0 }
  /** The numbers of the rules that matched nothing yet. */
  readonly #idle: Set<number>
  /** What is not allowed: not more than are counted. */
  readonly problems: string[] = []

  constructor(policy: Policy, pace: Pace) {
    this.#policy = policy
    this.#pace = pace
    this.#idle = new Set(policy.rules.keys())
  }

  get stopped(): number {
    return this.#counts.ask + this.#counts.deny
  }

  get count(): number {
    return this.stopped + this.#counts.allow
  }

  async *judgeAll(uses: Iterable<Use>): AsyncGenerator<Judgement> {
    for (const use of uses) {
      const judgement = await judge(use, { policy: this.#policy, tools: new Map(), pace: this.#pace })
      this.#counts[judgement.decision]++
      if (judgement.decision !== 'allow' && this.problems.length <= mostCounted)
        this.problems.push(describeJudgement(judgement))
      // Without a rule that decides all were tried.
      if (judgement.rule !== undefined) await this.#tryIdle(use)
      yield judgement
    }
  }

  async #tryIdle(use: Use): Promise<void> {
    for (const index of this.#idle) {
      const pause = this.#pace(use)
      if (pause) await pause
      if (matches(this.#policy.rules[index] as Rule, use)) this.#idle.delete(index)
    }
  }

  describeIdle(): string[] {
    return [...this.#idle].map(
      (index) => `rules[${index}] (${this.#policy.rules[index]?.tool}) matched nothing`,
    )
  }

  describeCounts(): string {
    const { allow, ask, deny } = this.#counts
    return `${allow} allowed, ${ask} asked about, ${deny} denied of ${this.count}`
  }
}

/** How many tool uses are printed at once: to keep more would take memory, but a table is laid out by its first rows. */
const [most, mostOfTable] = [50, 1000]

/** On a terminal a table, with `--raw` a line of JSON each, else a line of tab-separated fields each. */
async function print(context: Context, judgements: AsyncIterable<Judgement>): Promise<void> {
  const { output, flags } = context
  const toTable = createPrinter(context)
  const layOut = (group: Judgement[]): string => {
    if (!flags.raw)
      return output.isTerminal ? toTable(group) : group.map((each) => toTsv(toRow(each))).join('')
    const lines = group.map((each) => `${toJson(each)}\n`).join('')
    return output.isTerminal ? escapeJson(lines) : lines
  }
  let group: Judgement[] = []
  for await (const judgement of judgements) {
    if (group.push(judgement) < (output.isTerminal ? mostOfTable : most)) continue
    await output.write(layOut(group))
    group = []
  }
  if (group.length > 0) await output.write(layOut(group))
  await output.flush()
}

function createPrinter({ host, style }: Context): (group: readonly Judgement[]) => string {
  const paints: Record<Decision, (text: string) => string> = {
    allow: style.green,
    ask: style.yellow,
    deny: style.red,
  }
  const layOut = createTable({ width: host.stdout.columns || 80, most: [8, 12, 24] })
  let head = [['DECISION', 'RULE', 'TOOL', 'INPUT']]
  return (group) => {
    const rows = group.map((each) => {
      const said = each.reason === undefined ? '' : ` (${oneLine(each.reason, 200)})`
      return [each.decision, deciderOf(each), each.use.name, `${each.use.inputText}${said}`]
    })
    const lines = layOut([...head, ...rows])
    const titles = lines.splice(0, head.length).map((title) => style.bold(title))
    head = []
    const painted = lines.map((line, index) => {
      const { decision, why } = group[index] as Judgement
      const below = why === undefined ? '' : `\n  ${style.dim(oneLine(why, 500))}`
      return `${paints[decision](decision)}${line.slice(decision.length)}${below}`
    })
    return `${[...titles, ...painted].join('\n')}\n`
  }
}

/** The reason of the rule that decided, then why none allowed it. */
const reasonOf = ({ reason, why }: Judgement): string | undefined =>
  [reason, why].filter((each) => each !== undefined).join('; ') || undefined

const toRow = (judgement: Judgement): string[] => {
  const { use, decision } = judgement
  return [decision, deciderOf(judgement), use.id, use.name, use.inputText, reasonOf(judgement) ?? '']
}

/** The input as it is spelled. */
function toJson(judgement: Judgement): string {
  const { use, decision, rule = null } = judgement
  const head = JSON.stringify({ toolUse: use.id, name: use.name }).slice(0, -1)
  const tail = JSON.stringify({ decision, rule, reason: reasonOf(judgement) ?? null }).slice(1)
  return `${head},"input":${use.inputText},${tail}`
}
