import { formatPath } from '../json/parse.ts'
import { failureInstead } from '../problem/problem.ts'
import { readTokenCount, type TokenCount, type TokenCounts } from '../token-count.ts'
import * as z from '../zod.ts'

/** The facts about an answer besides its text. A stream adds to them as it comes. */
export interface AnswerSummary extends TokenCounts {
  /** The service's own name for the answer. */
  id?: string
  model?: string
  stopReason?: string
  /** The service's own explanation of it. */
  stopMessage?: string
  /** A part of the output's. */
  reasoningTokens?: TokenCount
  /** If it is absent, it is the sum of the input, the output and both caches. */
  totalTokens?: TokenCount
}

/** What one JSON value adds to an answer. */
export interface AnswerPiece {
  text: string
  /** What it says about the answer; `undefined` if it says nothing. */
  summary: AnswerSummary
  /** What it has beside text. */
  holds: Holding[]
}

/** What an answer may have beside text, in words. */
export type Holding = 'a function call' | 'a picture' | 'a file' | 'code' | 'thoughts' | 'something else'

/** Reads a value by a schema. Throws a `CliError` that names the place that does not fit. */
export function readAs<T extends z.ZodMiniType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = formatPath(issue?.path ?? []) || 'the body'
  throw failureInstead(value, `the answer has another shape than documented: ${path}: ${issue?.message}`)
}

/** A field that is only shown: of another type it counts as absent. */
export const shown = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

export const optionalText = z.lazily(() => z.nullish(z.string()))
export const shownText = z.lazily(() => shown(z.string()))
export const shownNumber = z.lazily(() => shown(z.number()))
export const tokenCount = z.lazily(() => normalized(readTokenCount, z.optional(z.nullable(z.number()))))

/** Makes a plain string a block with that text. */
export const toBlock = (value: unknown): unknown => (typeof value === 'string' ? { text: value } : value)

/** The same for a list; one block alone need not be in a list. */
export function toBlocks(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBlock)
  const block = toBlock(value)
  return typeof block === 'object' && block !== null ? [block] : block
}

/** A schema for what `normalize` makes of a value. */
export const normalized = <T extends z.ZodMiniType>(normalize: (value: unknown) => unknown, schema: T) =>
  z.pipe(z.transform(normalize), schema)
