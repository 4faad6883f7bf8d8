import { usage } from '../../errors.ts'
import { elementsOf } from '../../wire/page.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { unpack } from '../confirming/confirm-input.ts'
import { readUse, type Use } from '../running/judgement.ts'
import { parseGiven } from '../sending/given-events.ts'
import { isToolUse, SessionState } from '../session-state.ts'

/** The tool uses of a session's events, which are added in their order. Keeps no more of each than its text. */
export class RecordedUses {
  readonly #uses = new Map<string, { id: string; type: string; text: string; isContradicted: boolean }>()

  add({ event, text }: EventItem): void {
    if (!isToolUse(event)) return
    const { id = '', type } = event
    const key = event.id ?? `#${this.#uses.size}`
    const earlier = this.#uses.get(key)
    const isContradicted = earlier ? earlier.isContradicted || !isSame(earlier.text, text) : false
    this.#uses.set(key, { id, type, text, isContradicted })
  }

  *[Symbol.iterator](): Generator<Use> {
    for (const recorded of this.#uses.values()) {
      const use = readUse(recorded)
      if (use) yield use
    }
  }
}

/** Whether two events show one tool use: a session says so of those that have one id. */
function isSame(one: string, other: string): boolean {
  if (one === other) return true
  const state = new SessionState()
  let id = ''
  for (const text of [one, other]) {
    const event = SessionEvent.parse(JSON.parse(text))
    id = event.id ?? ''
    state.add(event, text)
  }
  return state.toolUse(id)?.isContradicted !== true
}

/** Reads the tool uses of events, in any form in which events are read elsewhere. Throws a usage error. */
export async function readRecordedUses(text: string, name: string): Promise<RecordedUses> {
  const uses = new RecordedUses()
  if (text.trim() === '') return uses
  const given = await parseGiven(text, name, { hint: 'a record is events as JSON' })
  for (const [index, element] of (given.lines ?? elementsOf(given.body, 'events')).entries()) {
    for (const each of unpack(element)) {
      const event = SessionEvent.safeParse(JSON.parse(each))
      if (!event.success) throw usage(`${name}: ${given.placeOf(index, '')}: is not an event`)
      uses.add({ event: event.data, text: each })
    }
  }
  return uses
}
