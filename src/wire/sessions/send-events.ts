import { suggestSpelling } from '../../argv/spelling.ts'
import { maxCountedProblems } from '../../errors.ts'
import * as z from '../zod.ts'

/** Event types that a client may send (src/wire/README.md: session events, 2.2). */
export const sendableEventTypes = [
  'user.message',
  'user.interrupt',
  'user.tool_confirmation',
  'user.custom_tool_result',
  'user.define_outcome',
  'user.tool_result',
  'system.message',
] as const

const notEmpty = z.buildOnFirstUse(() => z.minLength(1, 'must not be empty'))

const ToolUseId = z.buildOnFirstUse(() => z.string().check(notEmpty(), z.maxLength(128)))

/**
 * Maximum length in characters (src/wire/README.md: session events, 8). zod counts code points as characters.
 */
export const maxDenyMessageLength = 10_000

export const DenyMessage = z.buildOnFirstUse(() => z.string().check(z.maxLength(maxDenyMessageLength)))

/** Accepts blocks of any type. The specification documents only text blocks, but services accept others, too. */
const ContentBlock = z.buildOnFirstUse(() =>
  z.looseObject({ type: z.string(), text: z.optional(z.unknown()) }).check(
    z.check(({ value, issues }) => {
      if (value.type !== 'text' || typeof value.text === 'string') return
      const message = value.text === undefined ? 'is missing' : 'must be text'
      issues.push({ code: 'custom', path: ['text'], message, input: value.text })
    }),
  ),
)

const TextBlock = z.buildOnFirstUse(() =>
  z.looseObject({
    type: z.literal('text', 'must be text blocks only'),
    text: z.string().check(notEmpty()),
  }),
)

/**
 * zod runs a check with this condition even if other fields are invalid. So parley lists all problems at
 * once.
 */
const always = () => true

const event = <T extends (typeof sendableEventTypes)[number], S extends z.core.$ZodLooseShape>(
  type: T,
  shape: S,
) => z.looseObject({ type: z.literal(type), ...shape })

const ToolConfirmation = z.buildOnFirstUse(() =>
  event('user.tool_confirmation', {
    result: z.enum(['allow', 'deny']),
    tool_use_id: ToolUseId(),
    deny_message: z.nullish(DenyMessage()),
  }).check(
    z.refine(({ result, deny_message: message }) => message == null || result === 'deny', {
      path: ['deny_message'],
      message: "is allowed only when result is 'deny'",
      when: always,
    }),
  ),
)

/** Schemas of the events that a client may send (src/wire/README.md: session events, 2.2 and 8). */
const EventParameters = z.buildOnFirstUse(() =>
  z.discriminatedUnion(
    'type',
    [
      event('user.message', { content: z.array(ContentBlock()) }),
      event('user.interrupt', { session_thread_id: z.nullish(z.string()) }),
      ToolConfirmation(),
      event('user.custom_tool_result', {}),
      event('user.define_outcome', {}),
      event('user.tool_result', {}),
      event('system.message', { content: z.array(TextBlock()) }),
    ],
    {
      error: ({ input }) => {
        if (typeof input !== 'object' || input === null) return 'must be an object'
        const { type } = input as { type?: unknown }
        if (typeof type !== 'string') return type === undefined ? 'is missing' : 'must be text'
        const hint =
          suggestSpelling(type, sendableEventTypes) ||
          ": 'parley help event-types' lists the types that you can send"
        return `unknown event type '${type}'${hint}`
      },
    },
  ),
)
type EventParameters = z.infer<ReturnType<typeof EventParameters>>

/** Plain text messages are the most frequent events. They skip the schema, which would copy them. */
function isPlainMessage(event: unknown): boolean {
  const { type, content } = (event ?? {}) as { type?: unknown; content?: unknown }
  if (type !== 'user.message' || !Array.isArray(content) || content.length !== 1) return false
  return content[0]?.type === 'text' && typeof content[0].text === 'string'
}

/**
 * Ranges that public clients document and the specification does not show (src/wire/README.md: public
 * clients, 5). For a value out of range, parley only prints a warning.
 */
const documentedRanges = z.buildOnFirstUse(
  () =>
    new Map<unknown, z.ZodMiniType>([
      ['user.tool_result', z.looseObject({ tool_use_id: ToolUseId() })],
      ['user.custom_tool_result', z.looseObject({ custom_tool_use_id: ToolUseId() })],
      [
        'user.define_outcome',
        z.looseObject({
          max_iterations: z.number().check(z.lte(20, 'must be at most 20')),
          rubric: z.looseObject({ content: z.string().check(z.maxLength(262_144)) }),
        }),
      ],
    ]),
)

const typesBeforeSystemMessage = ['user.message', 'user.tool_result', 'user.custom_tool_result']

export interface EventProblem {
  /** Path of the invalid field, which begins with the index of the event. Empty for the whole list. */
  path: PropertyKey[]
  message: string
  /** True for an unknown event type. The service may support the type, so `--no-validate` sends the event. */
  isUnknownType?: boolean
}

/**
 * Returns a check of the events of one request (src/wire/README.md: session events, 2.2, 4.1 and 8). `add`
 * takes one event at a time, so the events need not stay in memory.
 */
export function createEventsCheck() {
  const problems: EventProblem[] = []
  const note = (problem: EventProblem) => {
    if (problems.length <= maxCountedProblems) problems.push(problem)
  }
  const rangeProblems: EventProblem[] = []
  let count = 0
  let type: unknown
  let typeBefore: unknown

  return {
    rangeProblems,
    add(event: unknown): void {
      if (type === 'system.message') {
        const message = 'only one system.message is allowed, and it must be the last event'
        note({ path: [count - 1], message })
      }
      if (problems.length <= maxCountedProblems && !isPlainMessage(event)) {
        const { type } = (event ?? {}) as { type?: unknown }
        for (const { path, message, code } of EventParameters().safeParse(event).error?.issues ?? []) {
          const isUnknownType = code === 'invalid_union' && typeof type === 'string'
          note({ path: [count, ...path], message, isUnknownType })
        }
        for (const { path, message, code } of documentedRanges().get(type)?.safeParse(event).error?.issues ??
          [])
          if (code !== 'invalid_type' && rangeProblems.length < maxCountedProblems)
            rangeProblems.push({ path: [count, ...path], message })
      }
      typeBefore = type
      type = (event as { type?: unknown } | null | undefined)?.type
      count++
    },
    end(): EventProblem[] {
      if (count === 0) return [{ path: [], message: 'must have at least one event' }]
      if (type === 'system.message' && !typesBeforeSystemMessage.includes(typeBefore as string)) {
        const message = `a system.message must come right after a ${typesBeforeSystemMessage.join(', ')}`
        note({ path: [count - 1], message })
      }
      return problems
    },
  }
}

export const EventsToSend = z.custom<EventParameters[]>(Array.isArray, 'must be a list').check(
  z.check(({ value, issues }) => {
    const check = createEventsCheck()
    for (const event of value) check.add(event)
    for (const problem of check.end()) issues.push({ code: 'custom', ...problem, input: undefined })
  }),
)

export const SendEventsBody = z.looseObject({ events: EventsToSend })
export type SendEventsBody = z.infer<typeof SendEventsBody>
