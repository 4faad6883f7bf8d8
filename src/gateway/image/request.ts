import { buildBody } from '../../content/body.ts'
import { type PromptOptions, readPrompt } from '../../content/prompt.ts'
import type { Input } from '../../io/input.ts'
import { parseAssignment } from '../../wire/json/assignment.ts'
import { nameFrom, promptOf } from './name.ts'

export interface ImageRequestOptions extends PromptOptions {
  temperature?: string
  maxOutputTokens?: string
  set?: string[]
}

/** Reads the request's body, and makes a file name from what it asks for. Throws a usage error. */
export async function readImageRequest(
  input: Input,
  words: string[],
  options: ImageRequestOptions,
): Promise<{ body: Uint8Array; name: string }> {
  const assignments = (options.set ?? []).map(parseAssignment)
  const { given, turn, text } = await readPrompt(input, words, options)
  const { temperature, maxOutputTokens } = options
  const body = await buildBody({
    given,
    turn,
    temperature,
    maxOutputTokens,
    assignments,
  })
  return { body, name: nameFrom(text || (await promptOf(body))) }
}
