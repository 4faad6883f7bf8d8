import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { Endurance } from '../following/endurance.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionState } from '../session-state.ts'
import type { Answer } from './answer-events.ts'
import type { RunningSession } from './running-session.ts'

/** What became of the answers of a request. */
interface Outcome {
  accepted: readonly Answer[]
  /** Nobody knows whether these arrived. */
  lost: readonly Answer[]
  refused: readonly Answer[]
  /** Somebody else gave these. */
  needless: readonly Answer[]
  named: SessionEvent[]
  failure?: CliError
}

const nothing: Outcome = { accepted: [], lost: [], refused: [], needless: [], named: [] }

/** An event that may have arrived is never sent twice: gateways answer 5xx also after the service took it. */
const isUncertain = ({ kind, details }: CliError) =>
  details.sent === 'unknown' || ['unknown', 'service', 'response'].includes(kind)

/** A receipt that names some of the answers, but not all, says nothing about the others. */
function sortOut(
  answers: readonly Answer[],
  named: readonly SessionEvent[],
): Pick<Outcome, 'accepted' | 'lost'> {
  if (named.length === 0 || named.length >= answers.length) return { accepted: answers, lost: [] }
  const ids = new Set(named.flatMap(({ tool_use_id: id, custom_tool_use_id: custom }) => [id, custom]))
  return {
    accepted: answers.filter(({ call }) => ids.has(call.id)),
    lost: answers.filter(({ call }) => !ids.has(call.id)),
  }
}

/** Sends answers in one request and says what became of it; where the service certainly did not take it, it is sent again for a while. */
export async function postOnce(
  session: RunningSession,
  answers: readonly Answer[],
  look: () => Promise<SessionState | undefined>,
): Promise<Outcome> {
  const { context, caller, parts, isPrinted = false } = session
  const endurance = new Endurance(context, caller)
  const body = Buffer.from(JSON.stringify({ events: answers.map(({ event }) => event) }))
  // What the receipt says beside the events is nothing that a person has to do anything about.
  const quiet = { ...context, note() {} }
  for (;;) {
    let isAccepted = false
    const onAccepted = () => {
      isAccepted = true
    }
    try {
      const named = await caller.call(endpoints.sendEvents, { ...parts, body }, (answer) =>
        readReceipt(quiet, answer, { isPrinted, onAccepted }),
      )
      return { ...nothing, ...sortOut(answers, named), named }
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      if (isAccepted) return { ...nothing, accepted: answers }
      if (isUncertain(error)) return { ...nothing, lost: answers, failure: error }
      if (error.kind === 'refused') return { ...nothing, ...setAside(answers, await look(), error) }
      endurance.endure(error)
      await endurance.wait()
    }
  }
}

/**
 * A refused request may have some answers that somebody else has given: the others are to be sent again. Throws the
 * refusal where there are none.
 */
function setAside(
  answers: readonly Answer[],
  seen: SessionState | undefined,
  refusal: CliError,
): Pick<Outcome, 'needless' | 'refused'> {
  const needless = answers.filter(({ call }) => seen?.isAnswered(call.id))
  if (needless.length === 0) throw refusal
  return { needless, refused: answers.filter((answer) => !needless.includes(answer)) }
}
