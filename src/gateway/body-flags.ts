import type { BodyParts } from '../content/body.ts'
import type { PromptOptions } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { usageError } from '../errors.ts'
import type { Input } from '../io/input.ts'
import { type Assignment, createAssignment, parseAssignment } from '../wire/json/edit.ts'
import { type BodyFieldValues, bodyFields } from './body-fields.ts'

/** Flags that change a request's body. */
export interface BodyFlags extends PromptOptions, BodyFieldValues {
  model?: string
  system?: string
  set?: string[]
}

/** Reads the parts of a body that come from flags and a schema. Throws a usage error. */
export async function readBodyFlags(
  input: Input,
  { system: given, set = [], ...options }: BodyFlags,
  schema?: AnswerSchema,
): Promise<Omit<BodyParts, 'turn'>> {
  const system = given === undefined ? undefined : await input.readFlagValue(given, '--system')
  if (system?.trim() === '') throw usageError('--system: it is empty')
  const assignments = [...(schema?.assignments ?? []), ...set.map(parseAssignment)]
  return { system, fields: assignFields(options), hasSchema: schema !== undefined, assignments }
}

/** Returns the assignments of the fields that have a flag of their own. */
export const assignFields = (values: BodyFieldValues): Assignment[] =>
  (Object.keys(bodyFields) as (keyof typeof bodyFields)[]).flatMap((name) => {
    const json = values[name]
    return json === undefined ? [] : [createAssignment([...bodyFields[name].path], json)]
  })
