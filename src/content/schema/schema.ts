import type { Context } from '../../context.ts'
import { CliError, countProblems, usage, usageProblems } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { type Assignment, appending, assigning } from '../../wire/json/edit.ts'
import { describeJsonError, tryParseJson } from '../../wire/json/parse.ts'
import { buildBody, type Part } from '../body.ts'
import { Checker } from './checker.ts'

export interface SchemaOptions {
  schema?: string
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
  { schema: name, schemaRetries }: SchemaOptions,
  mayAskAgain = false,
): Promise<AnswerSchema | undefined> {
  if (name === undefined) return undefined
  const source = await context.input.text(name, '--schema -')
  if (tryParseJson(source) === undefined)
    throw usage(`--schema ${name}: not valid JSON: ${await describeJsonError(source)}`)
  const checker = new Checker(context, source, context.limit.deadline)
  const problems = await checker.checkSchema()
  if (problems.length > 0) throw usageProblems(`--schema ${name}`, problems)
  const { schemaVia, answerRole } = settings.values
  const retries = mayAskAgain ? (schemaRetries ?? 0) : undefined
  return new AnswerSchema(
    context,
    { name, source: source.trim(), via: schemaVia, answerRole, retries },
    checker,
  )
}

interface SchemaUse {
  name: string
  source: string
  via: 'prompt' | 'native'
  /** The role of the model's turns. */
  answerRole: string
  /** `undefined` if the same command cannot ask again. */
  retries: number | undefined
}

/** What the answers of a run must fit. */
export class AnswerSchema {
  /** What is added to a request: parts, or fields. */
  readonly parts: Part[]
  readonly assignments: Assignment[]
  /** The form of an answer, asked for in words. */
  readonly words: string
  readonly #context: Context
  readonly #use: SchemaUse
  readonly #checker: Checker

  constructor(context: Context, use: SchemaUse, checker: Checker) {
    const isNative = use.via === 'native'
    this.words = `Answer with nothing but JSON that fits this JSON Schema:\n${use.source}`
    this.parts = isNative ? [] : [{ text: this.words }]
    this.assignments = isNative
      ? [
          assigning(['generationConfig', 'responseMimeType'], '"application/json"'),
          assigning(['generationConfig', 'responseJsonSchema'], use.source),
        ]
      : []
    this.#context = context
    this.#use = use
    this.#checker = checker
  }

  /**
   * Returns the JSON of an answer as it is spelled, or how it does not fit; `cut` says how the answer was cut. Throws a
   * `CliError` if the check takes too long.
   */
  async check(text: string, cut: string | undefined): Promise<{ json: string } | Mismatch> {
    const json = unwrap(text)
    if (tryParseJson(json) === undefined)
      return this.#mismatch(text, { cut, why: `the answer is not JSON: ${await describeJsonError(json)}` })
    const mismatches = await this.#checker.check(json).catch((error: unknown) => {
      throw error instanceof CliError ? error.with({ answer: text }) : error
    })
    if (mismatches.length === 0) return { json }
    const isOne = mismatches.length === 1
    const why = `the answer does not fit ${this.#use.name}: ${isOne ? mismatches[0] : countProblems(mismatches)}`
    return this.#mismatch(text, { cut, why, problems: isOne ? undefined : mismatches })
  }

  #mismatch(
    text: string,
    { cut, why, problems }: { cut: string | undefined; why: string; problems?: string[] | undefined },
  ): Mismatch {
    const { retries, via } = this.#use
    const fields =
      via === 'prompt' ? '; --schema-via native asks for the form by fields, if the model knows them' : ''
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
      ...(text.trim() === '' ? [] : [{ role: this.#use.answerRole, parts: [{ text }] }]),
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
