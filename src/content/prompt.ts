import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import type { Input } from '../io/input.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'
import type { GivenBody, Part } from './body.ts'
import { createFileAdvice, type FileKinds, readGivenFile } from './files.ts'

export interface PromptOptions {
  /** `-i`: a whole body. */
  input?: string
  /** `-f`: files for the user's turn. */
  file?: string[]
}

export interface Prompt {
  given?: GivenBody
  /** Parts of the user's turn. Empty if the body is complete. */
  turn: Part[]
  /** Words of the user's turn, from which image files get their names. */
  text: string
}

/** Reads a prompt from words, `-i`, `-f` and stdin. Throws a usage error. */
export async function readPrompt(
  { input, note }: Pick<Context, 'input' | 'note'>,
  words: string[],
  options: PromptOptions,
): Promise<Prompt> {
  const { input: name } = options
  const given =
    name === undefined
      ? undefined
      : { text: await input.readText(name, '-i -'), name: name === '-' ? 'stdin' : name }
  const prompt = words.length === 0 ? undefined : await input.joinWords(words, 'the prompt')
  const files = await readFileParts(input, options.file)
  if (prompt !== undefined && prompt.trim() === '') throw usageError('the prompt is empty')

  if (given || prompt !== undefined) {
    if (words.length === 0) input.skipStdin('-i FILE')
    const piped = words.length === 0 ? '' : await input.readPipedAddition('the prompt', fileAdvice)
    if (looksLikeBody(piped))
      note(`stdin looks like a request body; it is sent as text${given ? '' : '. -i - sends it as the body'}`)
    const texts = [prompt ?? '', piped].filter((text) => text !== '')
    return { given, turn: [...texts.map((text) => ({ text })), ...files], text: prompt ?? '' }
  }
  const text = await readStdinPrompt(input, files.length > 0)
  if (/^\s*\{/.test(text)) {
    const hint = "to send text, give it as words, or '-' for stdin"
    return { given: { text, name: 'stdin', hint }, turn: files, text: '' }
  }
  return { turn: [...(text === '' ? [] : [{ text }]), ...files], text }
}

/** Fields that are typical of request bodies. */
const bodyFields = ['contents', 'generationConfig', 'systemInstruction', 'safetySettings']

function looksLikeBody(text: string): boolean {
  const value = /^\s*\{/.test(text) ? tryParseJson(text) : undefined
  return isObject(value) && bodyFields.some((field) => Object.hasOwn(value, field))
}

const fileKinds: FileKinds = {
  mimeTypes: /^(image|audio|video)\/|^application\/pdf$/,
  description: 'an image, audio, video or PDF file',
}

const fileAdvice = createFileAdvice(fileKinds)

/** Reads files as parts of a turn: text with the file's name, other types as inline data. */
export async function readFileParts(input: Input, paths: readonly string[] = []): Promise<Part[]> {
  const parts: Part[] = []
  for (const path of paths) {
    const file = await readGivenFile(input, path, fileKinds)
    if ('base64' in file) parts.push({ inlineData: { mimeType: file.mimeType, data: file.base64 } })
    else parts.push(...(file.name === undefined ? [] : [{ text: `${file.name}:\n` }]), { text: file.text })
  }
  return parts
}

/** Without words, stdin is the prompt or a body. With files it may be empty. */
async function readStdinPrompt(input: Input, hasFiles: boolean): Promise<string> {
  if (hasFiles) return input.readPipedAddition('the prompt')
  if (!input.readsStdin) throw usageError('no prompt: give one as words, or with -i FILE')
  if (input.stdinKind === 'terminal')
    throw usageError('no prompt: give one as words, through a pipe, or with -i FILE')
  const text = await input.readStdin('the prompt', fileAdvice)
  if (text.trim() === '') throw usageError('no prompt: stdin is empty, and no words were given')
  return text
}
