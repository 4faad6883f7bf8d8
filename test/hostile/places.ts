import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { imageAnswer } from '../gateway/image/image.ts'
import { answering, message, type RunOptions, run, temporaryFolder } from '../harness/run.ts'

/** Returns the command that parses a text, and the files, variables and responses that contain the text. */
export type ParserInput = (text: Buffer) => { argv: string[]; options: RunOptions }

const send = ['events', 'send', '-s', 'sesn_1']
const list = ['events', 'list', '-s', 'sesn_1']
const image = ['image', 'a fox', '-m', 'painter', '-q']
const confirm = ['events', 'confirm', '-s', 'sesn_1', '--allow']

/** Shared folder of all runs that write no files. */
const cwd = temporaryFolder()
const folderOf = ([command]: string[]) => (command === 'image' ? temporaryFolder() : cwd)

/** Network in which every request gets an empty answer. */
const exchange = answering('{"content":[],"data":[]}')

/** Input in the body of a response. */
const inResponse =
  (
    argv: string[],
    body: (text: Buffer) => string | Buffer,
    options?: Parameters<typeof answering>[1],
  ): ParserInput =>
  (text) => ({ argv, options: { exchange: answering(body(text), options), cwd: folderOf(argv) } })

/** Input in the data of an image. */
const inImage = (inlineData: (text: Buffer) => object) =>
  inResponse(image, (text) => imageAnswer({ inlineData: inlineData(text) }))

/** Input on stdin. */
const onStdin =
  (argv: string[]): ParserInput =>
  (text) => ({ argv, options: { stdin: text, exchange, cwd: folderOf(argv) } })

/** Input in a file of the working folder. */
const inFile =
  (argv: string[], path: string, folder = '.'): ParserInput =>
  (text) => {
    const cwd = temporaryFolder()
    mkdirSync(join(cwd, folder), { recursive: true, mode: 0o700 })
    writeFileSync(join(cwd, folder, path), text, { mode: 0o600 })
    return { argv, options: { cwd, exchange, env: { PARLEY_CONFIG_DIR: join(cwd, 'config') } } }
  }

const asIs = (text: Buffer) => text
const json = (text: Buffer) => JSON.stringify(text.toString())
const refused = { status: 400 }
const eventStream = { headers: { 'content-type': 'text/event-stream' } }
const html = { status: 500, headers: { 'content-type': 'text/html' } }

/** Inputs that consist of the hostile text alone. */
export const wholeInputs: Record<string, ParserInput> = {
  'a chat answer': inResponse(['chat', 'hi'], asIs),
  'a stream': inResponse(['chat', 'hi'], asIs, eventStream),
  'the data of a stream': inResponse(['chat', 'hi'], (text) => `data: ${text}\n\n`, eventStream),
  'the rest of a streamed array': inResponse(['chat', 'hi'], (text) => `[${text}`),
  'an image answer': inResponse(image, asIs),
  'an event list': inResponse(list, asIs),
  'the response to events': inResponse([...send, 'hi'], asIs),
  'an HTML error page': inResponse(['chat', 'hi', '--retries', '0'], asIs, html),
  'an error body with --errors json': inResponse(['chat', 'hi', '--errors', 'json'], asIs, refused),
  'an error body for events send': inResponse([...send, 'hi'], asIs, refused),
  'stdin of chat': onStdin(['chat']),
  'stdin of chat -i': onStdin(['chat', '-i', '-']),
  'stdin of events send with arguments': onStdin([...send, 'hi']),
  'stdin of image': onStdin(['image', '-m', 'painter', '--raw']),
  'stdin of events send': onStdin(send),
  'stdin of events send --interrupt': onStdin([...send, '-i', '-', '--interrupt']),
  'stdin of events confirm': onStdin(confirm),
  'the value of --event': (text) => ({ argv: [...send, '--event', text.toString()], options: { exchange } }),
  'the value of --set': (text) => ({ argv: ['chat', 'hi', '--set', `a=${text}`], options: { exchange } }),
  'the path of --set': (text) => ({ argv: ['chat', 'hi', '--set', `${text}=1`], options: { exchange } }),
  'the file of -H @FILE': inFile(['chat', 'hi', '-H', '@header'], 'header'),
  'the file of -f': inFile(['chat', 'hi', '-f', 'file'], 'file'),
  'the file of --thread': inFile(['chat', 'hi', '--thread', 'thread'], 'thread'),
  'the profile file': inFile(['chat', 'hi'], 'config.json', 'config'),
}

/** Inputs with the hostile text inside a valid text, such as a field of JSON. */
export const partialInputs: Record<string, ParserInput> = {
  "an answer's text": inResponse(['chat', 'hi'], (text) => message(text.toString())),
  "an answer's stop reason": inResponse(['chat', 'hi'], (text) => message('a', { stop_reason: `${text}` })),
  "an image's text": inResponse(image, (text) => imageAnswer({ text: text.toString() })),
  "an image's MIME type": inImage((text) => ({ mimeType: text.toString(), data: 'AAAA' })),
  "an image's data": inImage((text) => ({ mimeType: 'image/png', data: text.toString() })),
  "an event's text": inResponse(
    list,
    (text) => `{"data":[{"type":"agent.message","content":[{"type":"text","text":${json(text)}}]}]}`,
  ),
  "an event's type": inResponse(list, (text) => `{"data":[{"id":${json(text)},"type":${json(text)}}]}`),
  "an error's message": inResponse(['chat', 'hi'], (text) => `{"error":{"message":${json(text)}}}`, refused),
  "an error's type": inResponse([...send, 'hi'], (text) => `{"type":"error","error":{"type":${json(text)}}}`),
  'the type of an event to send': (text) =>
    onStdin(send)(Buffer.from(`{"type":${json(text)},"content":[]}\n{"type":"user.interrupt"}`)),
  'the type of a content block to send': (text) =>
    onStdin(send)(Buffer.from(`{"type":"user.message","content":[{"type":${json(text)}}]}`)),
  'a field of a body': (text) =>
    onStdin(['chat', '-i', '-', '--set', 'a.b=1'])(
      Buffer.from(`{${json(text)}:${json(text)},"contents":[{"role":${json(text)}}]}`),
    ),
}

/**
 * Runs a command with a hostile text. Throws if the exit code is 1 (a bug) or stderr is longer than 2.5 MB.
 */
export async function expectNoCrash(input: ParserInput, text: string | Buffer): Promise<void> {
  const { argv, options } = input(Buffer.from(text as string))
  const { code, err } = await run(argv, options)
  expect(code, err.slice(0, 500)).not.toBe(1)
  expect(err.length).toBeLessThan(2_500_000)
}

/** Short texts that are hostile if they are repeated. */
export const repeatedTexts = [
  ...['[', '{', '}', '{"a":', '"', '\\', '\\"', ',', ':', '0', '[],', '{"type":5},', '5\n', '{"type":"x"}\n'],
  ...['<title', '<', 'data:image/', 'data:image/png;base64,', '(', '![](', '='],
  ...['\r', '\n', '\0', ' ', '\u2028', '\u202e', '🦜', '\u001b['],
  ...['data:\n', 'data:', ':\n', 'id:\n\n', '.a', '[0]', 'null\n'],
]

export const prototypeNames = ['constructor', '__proto__', 'toString', '']

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth)
const fieldNames = ['data', 'events', 'contents', 'error', 'content', 'candidates']

/** Odd texts, and arrays of 130,000 elements. */
export const singleTexts = [
  ...[5000, 200_000].flatMap((depth) => [nested(depth), nested(depth, '{"a":[', ']}')]),
  ...fieldNames.flatMap((name) => [
    `{"${name}":${nested(5000)}}`,
    `{"${name}":[${nested(900)},{"type":${nested(900)},"message":${nested(900)}}]}`,
    `{"${name}":[{"type":{"toString":1},"text":{"toString":1},"id":{"toString":1}}]}`,
    `{"__proto__":{"${name}":1},"constructor":{"${name}":[]},"${name}":{"__proto__":5}}`,
  ]),
  '{"data":[{"type":"agent.tool_use","id":"t","name":{"toString":1},"input":{"toString":1}}]}',
  '{"data":[{"type":"user.tool_confirmation","result":{"toString":1},"tool_use_id":{"toString":1}}]}',
  '{"data":[{"type":"user.define_outcome","description":{"toString":1}}]}',
  '{"data":[{"type":"session.error","error":{"message":{"toString":1}}}]}',
  `{"data":[{"type":"agent.tool_use","id":"t","name":"n","input":${nested(5000)}}]}`,
  ...fieldNames.flatMap((name) =>
    ['5', '{}'].map((element) => `{"${name}":[${`${element},`.repeat(130_000)}${element}]}`),
  ),
]
