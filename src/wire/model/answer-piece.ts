import { formatPath, isObject } from '../json/parse.ts'
import { failureInstead } from '../problem/problem.ts'
import type * as z from '../zod.ts'

/** What is known of an answer beside its text; a stream fills it in as it goes. */
export interface AnswerSummary {
  model?: string | undefined
  stopReason?: string | undefined
  /** What the service says to explain it. */
  stopMessage?: string | undefined
  inputTokens?: number | undefined
  outputTokens?: number | undefined
  cachedTokens?: number | undefined
}

/** What one JSON value adds to an answer. */
export interface AnswerPiece {
  text: string
  /** What it says of the answer; `undefined` where it says nothing. */
  facts: { [K in keyof AnswerSummary]?: AnswerSummary[K] | undefined }
  /** Something in it may be text, in a shape that nobody knows. */
  isStrange: boolean
}

/** Reads a value by a schema. Throws a `CliError` that names the place where it does not fit. */
export function readAs<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = formatPath(issue?.path ?? []) || 'the body'
  throw failureInstead(value, `the answer has another shape than documented: ${path}: ${issue?.message}`)
}

/** Under which names texts are known to stand, here or elsewhere. */
const textNames = ['text', 'content', 'delta', 'parts', 'choices', 'output', 'completion']

/** Whether a value of no known shape may be a part of what the answer says. */
export const mayHaveText = (value: unknown): boolean =>
  isObject(value)
    ? textNames.some((name) => Object.hasOwn(value, name) && Boolean(value[name]))
    : Array.isArray(value) || (typeof value === 'string' && value.trim() !== '')
