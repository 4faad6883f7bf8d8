import type { RequestBodyParts } from '../content/body.ts'
import type { PromptArguments, PromptFlags } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { createJsonAssignment, parseSetFlag } from '../wire/json/edit.ts'

export interface BodyFlags extends PromptFlags {
  model?: string
  /** JSON source text, as typed. */
  temperature?: string
  maxOutputTokens?: string
  set?: string[]
}

export const createBodyParts = (
  { set = [], temperature, maxOutputTokens }: BodyFlags,
  { system }: Pick<PromptArguments, 'system'>,
  schema?: AnswerSchema,
): Omit<RequestBodyParts, 'turn'> => ({
  system,
  hasSchema: schema !== undefined,
  assignments: [
    ...Object.entries({ temperature, maxOutputTokens }).flatMap(([name, json]) =>
      json === undefined ? [] : [createJsonAssignment(['generationConfig', name], json)],
    ),
    ...(schema?.assignments ?? []),
    ...set.map(parseSetFlag),
  ],
})
