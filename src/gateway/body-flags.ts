import type { BodyParts } from '../content/body.ts'
import type { PromptOptions } from '../content/prompt.ts'
import type { AnswerSchema } from '../content/schema/schema.ts'
import { usageError } from '../errors.ts'
import type { Input } from '../io/input.ts'
import { parseAssignment } from '../wire/json/edit.ts'

/** Flags that change a request's body. */
export interface BodyFlags extends PromptOptions {
  model?: string
  system?: string
  temperature?: string
  maxOutputTokens?: string
  set?: string[]
}

/** Reads the parts of a body that come from flags and a schema. Throws a usage error. */
export async function readBodyFlags(
  input: Input,
  { system: given, set = [], temperature, maxOutputTokens }: BodyFlags,
  schema?: AnswerSchema,
): Promise<Omit<BodyParts, 'turn'>> {
  const system = given === undefined ? undefined : await input.readFlagValue(given, '--system')
  if (system?.trim() === '') throw usageError('--system: it is empty')
  const assignments = [...(schema?.assignments ?? []), ...set.map(parseAssignment)]
  return { system, temperature, maxOutputTokens, hasSchema: schema !== undefined, assignments }
}
