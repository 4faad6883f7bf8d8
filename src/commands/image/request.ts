import { buildBody } from '../../client/generate-body.ts'
import { parseAssignment } from '../../client/set.ts'
import type { Input } from '../../terminal/input.ts'
import { type PromptOptions, readPrompt } from '../prompt.ts'
import { nameFrom, promptOf } from './name.ts'

export interface ImageRequestOptions extends PromptOptions {
  temperature?: number
  maxOutputTokens?: number
  set?: string[]
}

/** The request's body, and a name for what it asks for. Throws a usage error. */
export async function readImageRequest(
  input: Input,
  words: string[],
  options: ImageRequestOptions,
): Promise<{ body: Uint8Array; name: string }> {
  const assignments = (options.set ?? []).map(parseAssignment)
  const { given, turn, text } = await readPrompt(input, words, options)
  const { temperature, maxOutputTokens } = options
  const body = await buildBody({
    ...(given ? { given } : {}),
    turn,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    assignments,
  })
  return { body, name: nameFrom(text || (await promptOf(body))) }
}
