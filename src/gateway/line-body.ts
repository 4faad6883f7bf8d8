import { buildBody, type Part } from '../content/body.ts'
import { createAssumedWarning } from '../content/footer.ts'
import { readFileParts } from '../content/prompt.ts'
import { countAttempts, type Spent, tokensOf } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { createCaller, type ReadableResponse } from '../http/call.ts'
import { createSecretRenewal } from '../http/credentials.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { endpoints } from '../wire/endpoints.ts'
import { type Assignment, parseAssignment } from '../wire/json/edit.ts'

export interface LineOptions {
  input?: string
  file?: string[]
  system?: string
  temperature?: string
  maxOutputTokens?: string
  set?: string[]
}

/** What flags and words say of every line of a batch. */
export interface LineParts {
  /** The words, which come before each line's prompt. */
  words: Part[]
  files: Part[]
  system: string | undefined
  temperature: string | undefined
  maxOutputTokens: string | undefined
  assignments: Assignment[]
}

/** Reads what all lines have in common. Throws a usage error. */
export async function readLineParts(
  { input }: Context,
  words: string[],
  options: LineOptions,
): Promise<LineParts> {
  if (options.input !== undefined) throw usage('-i and --batch both give requests: use only one of them')
  const assignments = (options.set ?? []).map(parseAssignment)
  const system = options.system === undefined ? undefined : await input.value(options.system, '--system')
  const text = words.length === 0 ? '' : await input.words(words, 'the prompt')
  const files = await readFileParts(input, options.file)
  const { temperature, maxOutputTokens } = options
  return { words: text === '' ? [] : [{ text }], files, system, temperature, maxOutputTokens, assignments }
}

/** What one line of a batch asks for: a prompt, or a whole body. */
export type LineQuestion = { prompt: string } | { body: string }

/** Makes what builds the body of each line, from its prompt or from the body that it has. That throws a usage error. */
export async function createBodyBuilder({
  words,
  files,
  ...parts
}: LineParts): Promise<(line: LineQuestion) => Uint8Array | Promise<Uint8Array>> {
  const build = (prompt: string) => buildBody({ turn: [...words, { text: prompt }, ...files], ...parts })
  // A prompt is all in which the bodies of prompts differ.
  const sample = Buffer.from(await build(placeholder)).toString()
  const [before = '', after, ...others] = sample.split(JSON.stringify(placeholder))
  const isFixed = after !== undefined && others.length === 0
  return (line) => {
    if ('body' in line)
      return buildBody({ given: { text: line.body, name: 'its body' }, turn: [...words, ...files], ...parts })
    return isFixed ? Buffer.from(`${before}${JSON.stringify(line.prompt)}${after}`) : build(line.prompt)
  }
}

/** No flag and no file can hold it. */
const placeholder = 'the prompt\0'

/** How the lines of a batch are sent, and their answers counted. */
export function createLineCaller(
  outer: Context,
  settings: ResolvedSettings,
  endpoint: typeof endpoints.chat | typeof endpoints.image,
) {
  // A failure's body is a part of its result.
  const context = { ...outer, flags: { ...outer.flags, raw: false } }
  const caller = createCaller(context, settings, { isOneOfMany: true })
  const withFreshSecret = createSecretRenewal(caller.forgetSecrets)
  const { family, retries } = settings.values
  const { retryUnknown = false } = outer.flags
  const requestOf = ({ model, body }: LineRequest) => ({ params: { family, model }, body })
  return {
    context,
    tokensOf,
    retry: { repeat: endpoint.repeat, retries, retryUnknown },
    preview: async (request: LineRequest) => void (await caller.preview(endpoint, requestOf(request))),
    /** Sends a request, and counts what it spends. */
    send: <T extends object>(
      spent: Spent,
      request: LineRequest,
      read: (response: ReadableResponse) => Promise<T>,
    ): Promise<T & { attempts: number }> =>
      withFreshSecret(() =>
        countAttempts(spent, () =>
          caller.call(endpoint, requestOf(request), async (response) => ({
            ...(await read(response)),
            attempts: response.attempts,
          })),
        ),
      ),
    warnAssumed: createAssumedWarning(outer),
  }
}

/** What is sent for one line. */
export interface LineRequest {
  model: string
  body: Uint8Array
}
