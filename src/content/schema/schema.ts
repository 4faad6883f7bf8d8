import type { Context } from '../../context.ts'
import { CliError, countProblems, usage, usageProblems } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import { deadlineOf } from '../../settings/read-settings.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { type Assignment, appending, assigning } from '../../wire/json/edit.ts'
import { describeJsonError, tryParseJson } from '../../wire/json/parse.ts'
import { buildBody, type Part } from '../body.ts'
import { createChecker } from './checker.ts'

export interface SchemaOptions {
  schema?: string
  schemaRetries?: number
}

/** An answer that does not fit. */
export interface Mismatch {
  text: string
  failure: CliError
}

/** What the answers of a run must fit. */
export interface AnswerSchema {
  /** What is added to a request: parts, or fields. */
  parts: Part[]
  assignments: Assignment[]
  /** The form of an answer, asked for in words. */
  words: string
  /**
   * Returns the JSON of an answer as it is spelled, or how it does not fit; `cut` says how the answer was cut. Throws a
   * `CliError` if the check takes too long.
   */
  check(text: string, cut: string | undefined): Promise<{ json: string } | Mismatch>
  /**
   * Asks, and again, until an answer fits or no retry is left; then `isLast` is true. `again` makes the next question of
   * one and the mismatch that it led to.
   */
  untilFits<Question, T extends object>(
    question: Question,
    ask: (question: Question, isLast: boolean) => Promise<T | Mismatch>,
    again: (question: Question, mismatch: Mismatch) => Question | Promise<Question>,
  ): Promise<T | Mismatch>
  /** The same conversation, with the answer and its mismatches as further turns. */
  addTurns(body: Uint8Array, mismatch: Mismatch): Promise<Uint8Array>
}

/** Reads a schema from a file. Throws a usage error if it is not one. */
export async function openSchema(
  context: Context,
  settings: ResolvedSettings,
  { schema: name, schemaRetries: retries = 0 }: SchemaOptions,
  mayAskAgain = false,
): Promise<AnswerSchema | undefined> {
  if (name === undefined) return undefined
  const source = await context.input.text(name, '--schema -')
  if (tryParseJson(source) === undefined)
    throw usage(`--schema ${name}: not valid JSON: ${await describeJsonError(source)}`)
  const checker = createChecker(context, source, deadlineOf(context, settings))
  const problems = await checker.checkSchema()
  if (problems.length > 0) throw usageProblems(`--schema ${name}`, problems)

  const isNative = settings.values.schemaVia === 'native'
  const hint =
    retries === 0 && mayAskAgain
      ? `--schema-retries N asks again${isNative ? '' : '; --schema-via native asks for the form by fields, if the model knows them'}`
      : undefined

  async function check(text: string, cut: string | undefined): Promise<{ json: string } | Mismatch> {
    const json = unwrap(text)
    const fail = (why: string, mismatches?: string[]): Mismatch => ({
      text,
      failure: new CliError('response', cut === undefined ? why : `${cut}; ${why}`, {
        sent: 'yes',
        problems: mismatches,
        consequence: [`the answer begins: ${oneLine(text, 200)}`, ...(hint ? [hint] : [])].join('\n'),
        answer: text,
      }),
    })
    if (tryParseJson(json) === undefined)
      return fail(`the answer is not JSON: ${await describeJsonError(json)}`)
    const mismatches = await checker.check(json).catch((error: unknown) => {
      throw error instanceof CliError ? error.with({ answer: text }) : error
    })
    if (mismatches.length === 0) return { json }
    const isOne = mismatches.length === 1
    const what = isOne ? mismatches[0] : countProblems(mismatches)
    return fail(`the answer does not fit ${name}: ${what}`, isOne ? undefined : mismatches)
  }

  return {
    ...askingFor(source, settings.values.schemaVia),
    check,
    addTurns: (body, mismatch) => addTurns(body, mismatch, settings.values.answerRole),
    async untilFits(question, ask, again) {
      let asked = question
      for (let left = retries; ; left--) {
        const answer = await ask(asked, left === 0)
        if (!('failure' in answer) || left === 0) return answer
        const { message, details } = answer.failure
        const first = details.problems === undefined ? '' : `, the first one: ${details.problems[0]}`
        context.note(`${message}${first}; asking again`)
        asked = await again(asked, answer)
      }
    },
  }
}

/** The form of an answer, asked for in words or in the fields that the family has for it. */
function askingFor(
  source: string,
  via: 'prompt' | 'native',
): Pick<AnswerSchema, 'parts' | 'assignments' | 'words'> {
  const words = `Answer with nothing but JSON that fits this JSON Schema:\n${source.trim()}`
  if (via === 'prompt') return { parts: [{ text: words }], assignments: [], words }
  const assignments = [
    assigning(['generationConfig', 'responseMimeType'], '"application/json"'),
    assigning(['generationConfig', 'responseJsonSchema'], source.trim()),
  ]
  return { parts: [], assignments, words }
}

/** What is wrong with an answer, for the model. */
function explainMismatch({ failure: { message, details } }: Mismatch): string {
  const problems = details.problems ?? [message]
  return `This is wrong:\n${problems.join('\n')}\nAnswer again, with nothing but JSON that fits.`
}

function addTurns(body: Uint8Array, mismatch: Mismatch, role: string): Promise<Uint8Array> {
  const { text } = mismatch
  const turns = [
    ...(text.trim() === '' ? [] : [{ role, parts: [{ text }] }]),
    { role: 'user', parts: [{ text: explainMismatch(mismatch) }] },
  ]
  return buildBody({
    given: { text: Buffer.from(body).toString(), name: 'the body' },
    turn: [],
    assignments: turns.map((turn) => appending(['contents'], JSON.stringify(turn))),
  })
}

/** The JSON of an answer as the model spelled it: without the blanks around it and one Markdown fence. */
function unwrap(answer: string): string {
  const text = answer.trim()
  const [opening, fence = ''] = /^(`{3,}|~{3,})[^`\r\n]*\r?\n/.exec(text) ?? []
  if (opening === undefined) return text
  const end = text.lastIndexOf('\n')
  const closing = text.slice(end + 1).trim()
  const isClosed = closing.startsWith(fence) && new Set(closing).size === 1
  return isClosed && end >= opening.length - 1 ? text.slice(opening.length, end).trim() : text
}
