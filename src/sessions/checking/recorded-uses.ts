import { CliError, usage } from '../../errors.ts'
import { findChild, skipBlanks } from '../../wire/json/scanner.ts'
import { elementsOf } from '../../wire/page.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { unpack } from '../confirming/confirm-input.ts'
import { isAudit, readEntries } from '../running/audit.ts'
import { readUse, type Use } from '../running/judgement.ts'
import { parseGiven } from '../sending/given-events.ts'
import { SessionState } from '../session-state.ts'

/** A tool use of a record, and what became of it there, if that is known. */
export interface RecordedUse {
  use: Use
  was: Was | undefined
}

/** `result`: a client gave one. `unasked`: it ran, and nobody was asked. `open`: it waits. */
type Was = 'allow' | 'deny' | 'unasked' | 'result' | 'open'

/** The tool uses of an audit, or of events in any form that is read elsewhere. Throws a usage error. */
export async function readRecordedUses(text: string, name: string): Promise<RecordedUse[]> {
  if (text.trim() === '') return []
  if (isAudit(text)) {
    return readAuditedUses(text, name).catch((error) => {
      throw error instanceof CliError ? usage(error.message) : error
    })
  }
  const given = await parseGiven(text, name, { hint: 'a record is an audit, or events as JSON' })
  const record = createEventRecord()
  for (const [index, element] of elementsOf(given.body, 'events').entries()) {
    for (const each of unpack(element)) {
      const event = SessionEvent.safeParse(JSON.parse(each))
      if (!event.success) throw usage(`${name}: ${given.placeOf(index, '')}: is not an event`)
      record.add({ event: event.data, text: each })
    }
  }
  return record.uses()
}

/** Collects the tool uses of events that are added in their order. */
export function createEventRecord() {
  const state = new SessionState()
  /** The events of tool uses, by their ids. */
  const uses = new Map<string, EventItem>()
  const known = new Map<string, Was>()

  function addReply({ type, result, ...event }: SessionEvent): void {
    const id = event.tool_use_id ?? event.custom_tool_use_id ?? event.mcp_tool_use_id
    if (typeof id !== 'string') return
    if (type === 'user.tool_confirmation') known.set(id, result === 'allow' ? 'allow' : 'deny')
    else if (/^user\.(custom_)?tool_result$/.test(type)) known.set(id, 'result')
    else if (/^agent\.(mcp_)?tool_result$/.test(type) && !known.has(id)) known.set(id, 'unasked')
  }

  function becameOf({ id, permission }: Use): Was | undefined {
    if (known.has(id)) return known.get(id)
    if (state.pending.includes(id) || state.unlisted.includes(id)) return 'open'
    if (permission === 'allow') return 'unasked'
    return permission === 'deny' ? 'deny' : undefined
  }

  return {
    add(item: EventItem): void {
      const { event, text } = item
      state.add(event, text)
      addReply(event)
      if (/^agent\.(mcp_|custom_)?tool_use$/.test(event.type)) uses.set(event.id ?? `#${uses.size}`, item)
    },
    uses(): RecordedUse[] {
      return [...uses.values()].flatMap(({ event: { id = '', type }, text }) => {
        const isContradicted = state.toolUse(id)?.isContradicted
        const use = readUse({ id, type, text, isContradicted })
        return use ? [{ use, was: becameOf(use) }] : []
      })
    },
  }
}

/** What an audit says of a tool use so far. */
interface Audited {
  use?: Use
  decision?: unknown
  isOver?: boolean
  hasResult?: boolean
}

/** Of each tool use its last decision counts. */
async function readAuditedUses(text: string, name: string): Promise<RecordedUse[]> {
  const uses = new Map<string, Audited>()
  async function* bytes() {
    yield Buffer.from(text)
  }
  for await (const { entry, text: line } of readEntries(bytes(), name)) {
    if (typeof entry.toolUse !== 'string') continue
    const key = `${entry.session}\0${entry.toolUse}`
    const before = uses.get(key) ?? {}
    uses.set(key, { ...before, ...changeBy(entry, line) })
  }
  return [...uses.values()].flatMap((audited) =>
    audited.use ? [{ use: audited.use, was: wasOf(audited) }] : [],
  )
}

function changeBy(entry: Record<string, unknown>, line: string): Audited {
  const { event, decision } = entry
  if (event === 'decision')
    return { use: readAudited(entry, line), decision, isOver: false, hasResult: false }
  if (event === 'not-asked') return { use: readAudited(entry, line), decision: event, isOver: true }
  if (event === 'end') return { hasResult: true }
  return event === 'accepted' ? { isOver: true } : {}
}

function wasOf({ decision, isOver, hasResult }: Audited): Was | undefined {
  if (decision === 'not-asked') return 'unasked'
  if (!isOver) return 'open'
  if (hasResult) return 'result'
  return decision === 'allow' || decision === 'deny' ? decision : undefined
}

/** As the event that it was. Without its type nobody knows which rules are about it: that is unclear, and may be of a server. */
function readAudited(entry: Record<string, unknown>, line: string): Use | undefined {
  const { toolUse, type = 'agent.mcp_tool_use', server, name } = entry
  const input = findChild(line, skipBlanks(line, 0), 'input')
  const head = JSON.stringify({ id: toolUse, type, name, mcp_server_name: server }).slice(0, -1)
  const text = `${head}${input ? `,"input":${line.slice(input.start, input.end)}` : ''}}`
  const use = readUse({ id: String(toolUse), type: String(type), text })
  return use && { ...use, isUnclear: use.isUnclear || entry.type === undefined }
}
