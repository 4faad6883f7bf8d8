import { CliError } from '../errors.ts'
import { parseJson, tooDeep } from './json.ts'
import { readProblem } from './problem.ts'

/** Parses a body that is one JSON value. Throws a `CliError` of kind `response` that says what came instead. */
export function parseBody(body: string, contentType: string): unknown {
  if (body.trim() === '') throw notUnderstood('the answer is empty')
  const what = contentType.startsWith('application/json') || !contentType ? '' : ` (${contentType})`
  return parse(body, `the answer${what}`)
}

/** Parses JSON that a service sent; `what` names it in the message. Throws a `CliError` of kind `response`. */
export function parse(text: string, what: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if ((error as Error).message === tooDeep) throw notUnderstood(`${what} is ${tooDeep}`)
    // The engine's own message quotes the text.
    const { message } = /^\s*</.test(text) ? readProblem(text) : {}
    throw notUnderstood(`${what} is not JSON`, message)
  }
}

/** A failure of kind `response`; `serviceMessage` is what the service said instead, unescaped. */
export const notUnderstood = (message: string, serviceMessage?: string) =>
  new CliError('response', message, {
    sent: 'yes',
    ...(serviceMessage === undefined ? {} : { serviceMessage }),
  })
