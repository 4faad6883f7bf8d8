import type { Context } from '../../context.ts'
import { CliError, formatProblemCount, usageErrorOfProblems } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { type Assignment, appending, assigning } from '../../wire/json/edit.ts'
import { describeJsonError, parseGivenJson, tryParseJson } from '../../wire/json/parse.ts'
import { buildBody, type Part } from '../body.ts'
import { Checker } from './checker.ts'

export interface SchemaOptions {
  schema?: string
  /** `undefined` if the same command cannot ask again. */
  schemaRetries?: number
}

/** An answer that does not fit. */
export interface Mismatch {
  text: string
  failure: CliError
}

/** Reads a schema from a file. Throws a usage error if it is not one. */
export async function openSchema(
  context: Context,
  settings: ResolvedSettings,
  { schema: name, schemaRetries: retries }: SchemaOptions,
): Promise<AnswerSchema | undefined> {
  if (name === undefined) return undefined
  const source = await context.input.readText(name, '--schema -')
  parseGivenJson(source, `--schema ${name}`)
  const checker = new Checker(context, source)
  const problems = await checker.checkSchema()
  if (problems.length > 0) throw usageErrorOfProblems(`--schema ${name}`, problems)
  return new AnswerSchema(context, settings, checker, { name, source: source.trim(), retries })
}

interface SchemaUse {
  name: string
  source: string
  retries: number | undefined
}

/** What the answers of a run must fit. */
export class AnswerSchema {
  /** What is added to a request: parts, or fields. */
  readonly parts: Part[] = []
  readonly assignments: Assignment[] = []
  /** The form of an answer, asked for in words. */
  readonly words: string
  readonly #context: Context
  readonly #settings: ResolvedSettings['values']
  readonly #checker: Checker
  readonly #use: SchemaUse

  constructor(context: Context, { values }: ResolvedSettings, checker: Checker, use: SchemaUse) {
    this.words = `Answer with nothing but JSON that fits this JSON Schema:\n${use.source}`
    if (values.schemaVia === 'prompt') this.parts.push({ text: this.words })
    else
      this.assignments.push(
        assigning(['generationConfig', 'responseMimeType'], '"application/json"'),
        assigning(['generationConfig', 'responseJsonSchema'], use.source),
      )
    this.#context = context
    this.#settings = values
    this.#checker = checker
    this.#use = use
  }

  /**
   * Returns the JSON of an answer as it is spelled, or how it does not fit; `cut` says how the answer was cut. Throws a
   * `CliError` if the check takes too long.
   */
  async check(text: string, cut: string | undefined): Promise<{ json: string } | Mismatch> {
    const json = unwrap(text)
    if (tryParseJson(json) === undefined)
      return this.#mismatch(text, cut, `the answer is not JSON: ${describeJsonError(json)}`)
    const mismatches = await this.#checker.check(json).catch((error: unknown) => {
      throw error instanceof CliError ? error.with({ answer: text }) : error
    })
    if (mismatches.length === 0) return { json }
    const isOne = mismatches.length === 1
    const why = `the answer does not fit ${this.#use.name}: ${isOne ? mismatches[0] : formatProblemCount(mismatches)}`
    return this.#mismatch(text, cut, why, isOne ? undefined : mismatches)
  }

  #mismatch(text: string, cut: string | undefined, why: string, problems?: string[]): Mismatch {
    const { retries } = this.#use
    const fields =
      this.#settings.schemaVia === 'prompt'
        ? '; --schema-via native asks for the form by fields, if the model knows them'
        : ''
    const hint = retries === 0 ? [`--schema-retries N asks again${fields}`] : []
    const begins = text.trim() === '' ? [] : [`the answer begins: ${oneLine(text, 200)}`]
    const failure = new CliError('response', cut === undefined ? why : `${cut}; ${why}`, {
      sent: 'yes',
      problems,
      consequence: [...begins, ...hint].join('\n') || undefined,
      answer: text,
    })
    return { text, failure }
  }

  /** Asks with a body, and again with the mismatches told, until an answer fits or no retry is left; then `isLast` is true. */
  async untilFits<T extends object>(
    body: Uint8Array,
    ask: (body: Uint8Array, isLast: boolean) => Promise<T | Mismatch>,
  ): Promise<T | Mismatch> {
    let asked = body
    for (let left = this.#use.retries ?? 0; ; left--) {
      const answer = await ask(asked, left === 0)
      if (!('failure' in answer) || left === 0) return answer
      const { message, details } = answer.failure
      const first = details.problems === undefined ? '' : `, the first one: ${details.problems[0]}`
      this.#context.note(`${message}${first}; asking again`)
      asked = await this.#withTurns(asked, answer)
    }
  }

  /** The same conversation, with the answer and its mismatches as further turns. */
  #withTurns(body: Uint8Array, { text, failure: { message, details } }: Mismatch): Promise<Uint8Array> {
    const problems = details.problems ?? [message]
    const wrong = `This is wrong:\n${problems.join('\n')}\nAnswer again, with nothing but JSON that fits.`
    const turns = [
      ...(text.trim() === '' ? [] : [{ role: this.#settings.answerRole, parts: [{ text }] }]),
      { role: 'user', parts: [{ text: wrong }] },
    ]
    return buildBody({
      given: { text: Buffer.from(body).toString(), name: 'the body' },
      turn: [],
      assignments: turns.map((turn) => appending(['contents'], JSON.stringify(turn))),
    })
  }
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
