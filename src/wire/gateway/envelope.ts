import { isObject } from '../json/parse.ts'
import { notUnderstood } from '../problem/not-understood.ts'
import { failureInBody, isErrorEnvelope, readProblem } from '../problem/problem.ts'
import { isMessage } from './message-answer.ts'
import { isNative } from './native-answer.ts'

/** Takes a whole body out of its envelope. Throws a `CliError` where it is an error. */
export const takeOutOfBody = (value: unknown): unknown => unwrap(value, failureInBody)

/** The same for an event or a chunk of a stream. */
export function takeOutOfEvent(value: unknown, event: string): unknown {
  if (event.toLowerCase() === 'error') throw failureInStream(value)
  return unwrap(value, failureInStream)
}

/** Takes an answer out of the envelope that some gateways put it in. Throws where it is an error. */
function unwrap(value: unknown, failure: (error: unknown) => Error): unknown {
  const isOpen = !isObject(value) || isAnswer(value)
  const inner = isOpen ? undefined : envelopes.map((name) => Object.hasOwn(value, name) && value[name])
  const answer = inner?.find((each) => isAnswer(each) || (isObject(each) && isErrorEnvelope(each)))
  // A message beside an answer, such as `"message": "ok"`, is not an error.
  const isFailed = answer === undefined ? isErrorEnvelope(value) : isObject(value) && Boolean(value.error)
  if (isFailed) throw failure(value)
  if (answer === undefined) return value
  if (isErrorEnvelope(answer)) throw failure(answer)
  return answer
}

const envelopes = ['response', 'data']

const isAnswer = (value: unknown): boolean =>
  isNative(value) || isMessage(value) || (isObject(value) && typeof value.type === 'string')

function failureInStream(value: unknown) {
  const { message } = readProblem(value)
  return notUnderstood('the stream ended with an error', message).with({ body: value })
}
