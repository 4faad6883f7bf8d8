import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import type { AcceptedFileKinds, InputReader } from '../io/input.ts'
import type { MessagePart, UserRequestBody } from './body.ts'
import type { SchemaSource } from './schema/schema.ts'

export interface PromptFlags {
  input?: string
  file?: string[]
  system?: string
  schema?: string
}

/** Inputs of a prompt from flags and positional arguments, without piped text. */
export interface PromptArguments {
  schema?: SchemaSource | undefined
  system?: string | undefined
  given?: UserRequestBody | undefined
  /** Positional arguments, joined. The text of stdin replaces the argument `-`. */
  prompt?: string | undefined
  files: MessagePart[]
}

export async function readPromptArguments(input: InputReader, flags: PromptFlags, words: string[]) {
  const { schema, system, input: path, file = [] } = flags
  const named: PromptArguments = { files: [] }
  if (schema !== undefined) named.schema = { name: schema, text: await input.readText(schema, '--schema -') }
  // Flags are read before piped text, because a flag may name stdin.
  if (system !== undefined) named.system = await input.readFlagValue(system, '--system')
  if (named.system?.trim() === '') throw usageError('--system: it is empty')
  if (path !== undefined)
    named.given = { text: await input.readText(path, '-i -'), name: path === '-' ? 'stdin' : path }
  if (words.length > 0) named.prompt = await input.joinWords(words, 'the prompt')
  for (const each of file) {
    const content = await input.readContent(each, fileKinds)
    if ('base64' in content)
      named.files.push({ inlineData: { mimeType: content.mimeType, data: content.base64 } })
    else {
      if (content.name !== undefined) named.files.push({ text: `${content.name}:\n` })
      named.files.push({ text: content.text })
    }
  }
  return named
}

/**
 * Reads flags, positional arguments and piped text. `turn` is the message of the user. If a body is given,
 * `turn` has only the files. `text` is the prompt without the files; `image` derives file names from `text`.
 * Throws a usage error if there is no prompt.
 */
export async function readPromptInputs({ input }: Context, options: PromptFlags, words: string[]) {
  const { prompt, files, ...named } = await readPromptArguments(input, options, words)
  if (prompt?.trim() === '') throw usageError('the prompt is empty')
  if (prompt !== undefined) {
    const texts = await readPromptTexts(input, prompt)
    return { ...named, turn: [...texts, ...files], text: prompt }
  }
  if (named.given) return { ...named, turn: files, text: '' }
  const text = await readStdinPrompt(input, files.length > 0)
  if (!/^\s*\{/.test(text)) return { ...named, turn: [...toParts(text), ...files], text }
  const hint = "to send text, give it as words, or '-' for stdin"
  return { ...named, given: { text, name: 'stdin', hint }, turn: files, text: '' }
}

/** Returns the text of the positional arguments, and after it the piped text. */
export async function readPromptTexts(input: InputReader, prompt = ''): Promise<MessagePart[]> {
  return prompt === '' ? [] : toParts(prompt, await input.readPipedText('the prompt', fileKinds))
}

const toParts = (...texts: string[]): MessagePart[] =>
  texts.filter((text) => text !== '').map((text) => ({ text }))

const fileKinds: AcceptedFileKinds = {
  mimeTypes: /^(image|audio|video)\/|^application\/pdf$/,
  description: 'an image, audio, video or PDF file',
}

async function readStdinPrompt(input: InputReader, hasFiles: boolean): Promise<string> {
  if (hasFiles) return input.readPipedText('the prompt')
  if (!input.readsStdin) throw usageError('no prompt: add one to the command line, or use -i FILE')
  if (input.stdinKind === 'terminal')
    throw usageError('no prompt: add one to the command line, pipe one in, or use -i FILE')
  const text = await input.readStdinText('the prompt', fileKinds)
  if (text.trim() === '')
    throw usageError('no prompt: stdin is empty; add a prompt to the command line, or use -i FILE')
  return text
}
