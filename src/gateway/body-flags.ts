import type { BodyParts } from '../content/body.ts'
import type { ArgumentInputs, PromptOptions } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { createJsonAssignment, type JsonAssignment, parseSetFlag } from '../wire/json/edit.ts'
import { type BodyFieldValues, bodyFields } from './body-fields.ts'

export interface BodyFlags extends PromptOptions, BodyFieldValues {
  model?: string
  set?: string[]
}

/** Converts flags to parts of a request body. Throws a usage error if a value of `--set` is invalid. */
export const createBodyFlags = (
  { set = [], ...options }: BodyFlags,
  { system }: Pick<ArgumentInputs, 'system'>,
  schema?: AnswerSchema,
): Omit<BodyParts, 'turn'> => ({
  system,
  hasSchema: schema !== undefined,
  assignments: [...assignFields(options), ...(schema?.assignments ?? []), ...set.map(parseSetFlag)],
})

const assignFields = (values: BodyFieldValues): JsonAssignment[] =>
  (Object.keys(bodyFields) as (keyof typeof bodyFields)[]).flatMap((name) => {
    const json = values[name]
    return json === undefined ? [] : [createJsonAssignment([...bodyFields[name].path], json)]
  })
