import type { Context } from '../../context.ts'
import { CliError, createUsageErrorFromProblems, formatProblemCount } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { type Assignment, createAppendingAssignment, createAssignment } from '../../wire/json/edit.ts'
import { describeJsonError, parseGivenJson, tryParseJson } from '../../wire/json/parse.ts'
import { buildBody, type Part } from '../body.ts'
import { SchemaChecker } from './checker.ts'

export interface SchemaSource {
  name: string
  text: string
}

export interface Mismatch {
  text: string
  failure: CliError
}

/**
 * `retries` is `undefined` if the command cannot repeat the request. Throws a usage error if the text is not
 * a schema.
 */
export async function openSchema(
  context: Context,
  settings: ResolvedSettings,
  { name, text }: SchemaSource,
  retries?: number,
): Promise<AnswerSchema> {
  parseGivenJson(text, `--schema ${name}`)
  const schema = new AnswerSchema(context, settings, { name, text }, retries)
  const problems = await schema.checker.checkSchema()
  if (problems.length > 0) throw createUsageErrorFromProblems(`--schema ${name}`, problems)
  return schema
}

export class AnswerSchema {
  /** Empty with `--schema-via native`. */
  readonly parts: Part[] = []
  /** Empty with `--schema-via prompt`. */
  readonly assignments: Assignment[] = []
  readonly instructions: string
  readonly checker: SchemaChecker
  readonly #context: Context
  readonly #settings: ResolvedSettings['values']
  readonly #name: string
  readonly #retries: number | undefined

  constructor(
    context: Context,
    { values }: ResolvedSettings,
    { name, text }: SchemaSource,
    retries?: number,
  ) {
    const source = text.trim()
    this.instructions = `Answer with nothing but JSON that fits this JSON Schema:\n${source}`
    if (values.schemaVia === 'prompt') this.parts.push({ text: this.instructions })
    else
      this.assignments.push(
        createAssignment(['generationConfig', 'responseMimeType'], '"application/json"'),
        createAssignment(['generationConfig', 'responseJsonSchema'], source),
      )
    this.checker = new SchemaChecker(context, text)
    this.#context = context
    this.#settings = values
    this.#name = name
    this.#retries = retries
  }

  /** `cut` describes how the answer was cut. Throws a `CliError` if the check takes too long. */
  async check(text: string, cut: string | undefined): Promise<{ json: string } | Mismatch> {
    const json = unwrapJson(text)
    if (tryParseJson(json) === undefined)
      return this.#mismatch(text, cut, `the answer is not JSON: ${describeJsonError(json)}`)
    const mismatches = await this.checker.check(json).catch((error: unknown) => {
      throw error instanceof CliError ? error.with({ answer: text }) : error
    })
    if (mismatches.length === 0) return { json }
    const isOne = mismatches.length === 1
    const why = `the answer does not match ${this.#name}: ${isOne ? mismatches[0] : formatProblemCount(mismatches)}`
    return this.#mismatch(text, cut, why, isOne ? undefined : mismatches)
  }

  #mismatch(text: string, cut: string | undefined, why: string, problems?: string[]): Mismatch {
    const fields =
      this.#settings.schemaVia === 'prompt'
        ? '; --schema-via native sends the schema as a field of the request, if the model supports it'
        : ''
    const hint = this.#retries === 0 ? [`--schema-retries N requests another answer${fields}`] : []
    const begins = text.trim() === '' ? [] : [`the answer begins: ${oneLine(text, 200)}`]
    const failure = new CliError('response', cut === undefined ? why : `${cut}; ${why}`, {
      sent: 'yes',
      problems,
      consequence: [...begins, ...hint].join('\n') || undefined,
      answer: text,
    })
    return { text, failure }
  }

  /** Each retry adds the answer and its mismatches to the conversation. */
  async retryUntilMatching<T extends object>(
    body: Uint8Array,
    request: (body: Uint8Array) => Promise<T | Mismatch>,
  ): Promise<T | Mismatch> {
    let sent = body
    for (let left = this.#retries ?? 0; ; left--) {
      const answer = await request(sent)
      if (!('failure' in answer) || left === 0) return answer
      const { message, details } = answer.failure
      const first = details.problems === undefined ? '' : `, the first one: ${details.problems[0]}`
      this.#context.messages.note(`${message}${first}; requesting another answer`)
      sent = await this.#withTurns(sent, answer)
    }
  }

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
      assignments: turns.map((turn) => createAppendingAssignment(['contents'], JSON.stringify(turn))),
    })
  }
}

function unwrapJson(answer: string): string {
  const text = answer.trim()
  const [opening, fence = ''] = /^(`{3,}|~{3,})[^`\r\n]*\r?\n/.exec(text) ?? []
  if (opening === undefined) return text
  const end = text.lastIndexOf('\n')
  const closing = text.slice(end + 1).trim()
  const isClosed = closing.startsWith(fence) && new Set(closing).size === 1
  return isClosed && end >= opening.length - 1 ? text.slice(opening.length, end).trim() : text
}
