import type { Context } from '../context.ts'
import { type CliError, createUsageErrorFromProblems, usageError } from '../errors.ts'
import { columnGap } from '../io/columns.ts'
import { toOneLine } from '../io/escape.ts'
import { formatLocalTime } from '../io/local-time.ts'
import { createRawPrinter, printRawBytes } from '../io/raw-printer.ts'
import { formatTsvLine } from '../io/tsv.ts'
import { createLineWrapper } from '../io/wrapping.ts'
import { endpoints } from '../wire/endpoints.ts'
import { createBodyCollector, type HttpResponse, readBody } from '../wire/exchange.ts'
import { createJsonAssignment, editJson } from '../wire/json/edit.ts'
import { describeSchemaIssues, isObject, parseInputJson, tryParseJson } from '../wire/json/parse.ts'
import { createJsonSequenceSplitter } from '../wire/json/splitter.ts'
import { createTextWithinLimit } from '../wire/json/text-limit.ts'
import { readListPage, readPages } from '../wire/page.ts'
import { createResponseError, createUnexpectedBodyFailure } from '../wire/problem/problem.ts'
import { readSessionUsage } from '../wire/sessions/usage.ts'
import { describeWaitingToolUses } from './following/stop-text.ts'
import { formatListQuery } from './listing/event-list.ts'
import { createRowPrinter, printIds } from './listing/rows.ts'
import { quoteUnusualName } from './quoted-name.ts'
import { readSessionState } from './read-session.ts'
import { createAgentClient, createSessionClient, type SessionOptions } from './session.ts'
import { formatListSessionsCommand } from './session-command.ts'
import { findToolInput, summarizeToolUse } from './tool-use-summary.ts'
import { describeSessionUsage } from './usage-text.ts'

type SessionResource = Record<string, unknown> & { id: string }

// An error body can have `title` and `status` like a session, so a session must have an id.
const isSession = (value: unknown): value is SessionResource =>
  isObject(value) && typeof value.id === 'string' && value.id !== '' && value.type !== 'error'

/** No schema checks the fields of a session, so the table shows a field that is not a string as empty. */
const toCell = (value: unknown): string => (typeof value === 'string' ? value : '')

interface ListSessionsOptions extends SessionOptions {
  status?: string[]
  limit?: number
  ids?: boolean
}

export async function listSessions(context: Context, options: ListSessionsOptions): Promise<void> {
  const { flags, output, messages } = context
  const { status: statuses, limit, ids } = options
  const { caller, headers } = await createAgentClient(context, options)
  const createParts = (cursor?: string) => ({
    params: {},
    headers,
    query: formatListQuery({ statuses, limit }, cursor) || undefined,
  })
  if (await caller.preview(endpoints.listSessions, createParts())) return
  const name = 'the list of sessions'
  const raw = createRawPrinter(output)
  const titles = ['ID', 'STATUS', 'CHANGED', 'TITLE'] as const
  const printRows = createRowPrinter(context, titles, toTableRow, toRow)
  const pages = readPages(name, async (cursor) => {
    const { data, texts, next } = await caller.call(
      endpoints.listSessions,
      createParts(cursor),
      async ({ body }) => readListPage(await readBody(body), name),
    )
    const items = data.map((session, index) => {
      if (!isSession(session)) throw createResponseError(`${name}: data[${index}] has no id`)
      return { session, text: texts[index] }
    })
    return { items, firstId: items[0]?.session.id, next }
  })
  const maxCount = limit ?? Infinity
  let count = 0
  for await (const { items } of pages) {
    // A service may ignore `--status` and `--limit` in the query, so parley applies them to the response,
    // too.
    const wanted = items
      .filter(({ session }) => !statuses || statuses.includes(toCell(session.status)))
      .slice(0, maxCount - count)
    const sessions = wanted.map(({ session }) => session)
    if (ids) await printIds(context, sessions)
    else if (!flags.raw) await printRows(sessions)
    else {
      for (const { text } of wanted) raw.add(`${text}\n`)
      await raw.write()
    }
    count += sessions.length
    if (count >= maxCount) break
  }
  await output.flush()
  if (count === 0) messages.note(statuses ? `no session is ${statuses.join(' or ')}` : 'no sessions')
}

const toRow = ({
  id,
  status,
  title,
  updated_at: updated,
  created_at: created,
}: SessionResource): string[] => [id, toCell(status), toCell(title), toCell(updated) || toCell(created)]

/** The title is the last column, because a table cuts the last column to fit. */
function toTableRow(session: SessionResource) {
  const [id = '', status = '', title = '', changed = ''] = toRow(session)
  return [id, status, changed, title] as const
}

interface CreateSessionOptions extends SessionOptions {
  agent?: string
  environment?: string
  title?: string
  input?: string
}

export async function createSession(context: Context, options: CreateSessionOptions): Promise<void> {
  const { flags, output } = context
  const { caller, headers } = await createAgentClient(context, options)
  const body = await readCreateBody(context, options)
  const parts = { params: {}, headers, body, inspectCommand: formatListSessionsCommand(context) }
  if (await caller.preview(endpoints.createSession, parts)) return
  let created: SessionResource | undefined
  const explain = (failure: CliError) => (created ? addSessionId(failure, created) : failure)
  await context.tracker.during({ explain }, async () => {
    await caller.call(endpoints.createSession, parts, async (response) => {
      const { session, bytes } = await receiveSession(context, response, (received) => {
        response.accept(describeCreated(received))
        created = received
        context.reportData.session = received.id
      })
      await (flags.raw ? printRawBytes(output, bytes) : printIds(context, [session]))
    })
    await output.flush()
  })
}

const describeCreated = ({ id }: SessionResource) => `the session ${quoteUnusualName(id)} was created`

/** Adds the created session's id to a failure, so that nobody creates and pays for a second session. */
function addSessionId(failure: CliError, session: SessionResource): CliError {
  const isOutput = failure.kind === 'file'
  return failure.with({
    sent: 'yes',
    retry: 'never',
    consequence: `${describeCreated(session)}${isOutput ? ', only the output failed' : ''}`,
  })
}

/**
 * Reads a session from a response. Without `--raw`, reads only to the end of the session's JSON. So the
 * response may be cut after the JSON, or stay open. Calls `onReceived` at the end of the JSON. Throws a
 * `CliError` if the response is not a session.
 */
async function receiveSession(
  { flags }: Context,
  response: HttpResponse,
  onReceived?: (session: SessionResource) => void,
): Promise<{ session: SessionResource; bytes: Uint8Array }> {
  const collected = createBodyCollector()
  const decoder = new TextDecoder()
  const splitter = createJsonSequenceSplitter()
  let first: unknown
  for await (const chunk of response.body) {
    collected.add(chunk)
    // Only the first JSON value counts, because a login page may contain an object with an id.
    const [json] = first === undefined ? splitter.push(decoder.decode(chunk, { stream: true })) : []
    if (json === undefined) continue
    first = tryParseJson(json) ?? json
    if (!isSession(first)) continue
    onReceived?.(first)
    if (!flags.raw) break
  }
  const bytes = collected.bytes()
  if (isSession(first)) return { session: first, bytes }
  const text = new TextDecoder().decode(bytes)
  const failure = createUnexpectedBodyFailure(
    tryParseJson(text) ?? text,
    `the response (${response.status}) is not a session`,
  )
  throw failure.with({ response: { ...response, bytes } })
}

async function readCreateBody(
  { input }: Context,
  { agent, environment, title, input: path }: CreateSessionOptions,
): Promise<Uint8Array> {
  const given = path === undefined ? '{}' : await input.readText(path, '-i -')
  const name = path === undefined ? 'the session' : path === '-' ? 'stdin' : path
  if (!isObject(parseInputJson(given, name))) throw usageError(`${name}: must be an object`)
  const fields = Object.entries({ agent, environment_id: environment, title })
  const assignments = fields.flatMap(([field, value]) =>
    value === undefined ? [] : [createJsonAssignment([field], JSON.stringify(value))],
  )
  const text = createTextWithinLimit(() => editJson(given, assignments))
  const body = JSON.parse(text) as Record<string, unknown>
  const missing = [
    ...(isIdMissing(body.agent) ? ['--agent ID'] : []),
    ...(isIdMissing(body.environment_id) ? ['--environment ID'] : []),
  ]
  if (missing.length > 0) throw usageError(`give ${missing.join(' and ')}, or -i FILE with these fields`)
  const { CreateSessionBody } = await import('../wire/sessions/session-requests.ts')
  const parsed = CreateSessionBody.safeParse(body)
  if (!parsed.success) throw createUsageErrorFromProblems(name, describeSchemaIssues(parsed.error))
  return Buffer.from(text)
}

const isIdMissing = (value: unknown): boolean =>
  value === undefined || (isObject(value) ? isBlank(value.id) : isBlank(value))

const isBlank = (value: unknown) => typeof value === 'string' && value.trim() === ''

const labelColumns = 'may wait for'.length + columnGap.length

export async function showSession(context: Context, options: SessionOptions): Promise<void> {
  const { host, flags, output, messages } = context
  const access = await createSessionClient(context, options, 'add its id')
  const { caller, parts } = access
  if (await caller.preview(endpoints.readSession, parts)) return
  const { session, bytes } = await caller.call(endpoints.readSession, parts, (response) =>
    receiveSession(context, response),
  )
  if (flags.raw) return printRawBytes(output, bytes)
  const [, status = '', title = '', changed = ''] = toRow(session)
  const usage = describeSessionUsage(readSessionUsage(session.usage) ?? {})
  const known = [
    ['id', session.id],
    ['status', status],
    ['title', title],
    ['changed', output.isTerminal ? formatLocalTime(changed) : changed],
    ['usage', usage],
  ].filter(([, value]) => value !== '')
  const wrapValue = await createLineWrapper(host.stdout, labelColumns)
  const toLine = ([label = '', value = '']: string[]) =>
    output.isTerminal
      ? `${label.padEnd(labelColumns)}${wrapValue(toOneLine(value))}\n`
      : formatTsvLine([label, value])
  const print = (rows: string[][]) => output.write(rows.map(toLine).join(''))
  await print(known)
  const state = await readSessionState(access)
  const describe = (toolUse: string) => {
    const use = state.getToolUse(toolUse)
    return use ? `${toolUse} ${summarizeToolUse(use, findToolInput(use.text ?? '{}'))}` : toolUse
  }
  const unlisted = state.isIdle ? state.unlisted : []
  const { stop } = state
  await print([
    ...(stop?.kind === 'stuck' ? [['stopped', stop.reason]] : []),
    ...state.answerable.map((toolUse) => ['waits for', describe(toolUse)]),
    ...unlisted.map((toolUse) => ['may wait for', describe(toolUse)]),
  ])
  await output.flush()
  const waiting = [...state.answerable, ...unlisted]
  if (waiting.length === 0) return
  const { consequence } = describeWaitingToolUses(access, state, waiting)
  const [line = '', ...more] = consequence.split('\n')
  messages.note(line)
  for (const line of more) messages.printLine(messages.wrap(`  ${line}`))
}
