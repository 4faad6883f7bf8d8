import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { encode } from 'fast-png'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'

/** Runs `parley image` in a new folder. By default the answer has one image. */
export async function image(argv: string[], { cwd = temporaryFolder(), ...world }: RunOptions = {}) {
  const exchange = world.exchange ?? answering(imageAnswer(inline(png())))
  const env = { PARLEY_IMAGE_MODEL: 'alpha-image', TMPDIR: temporaryFolder(), ...world.env }
  const ended = await run(['image', ...argv], { ...world, cwd, env, exchange })
  const read = (name: string) => readFileSync(join(cwd, name))
  return {
    ...ended,
    cwd,
    read,
    files: readdirSync(cwd).sort(),
    saved: existsSync(env.TMPDIR) ? readdirSync(env.TMPDIR) : [],
  }
}

/** Creates run options with a service that answers with these parts. */
export const parts = (...all: object[]) => ({ exchange: answering(imageAnswer(...all)) })

/** Creates a small PNG. Different shades give different bytes. */
export const png = (shade = 0): Buffer =>
  Buffer.from(encode({ width: 1, height: 1, channels: 3, data: new Uint8Array([shade, shade, shade]) }))

/** First bytes of other image formats, enough for their detection, and the end marker of a JPEG. */
export const jpeg = Buffer.from('ffd8ffe000104a46494600010100000100010000ffd9', 'hex')
export const gif = Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1')
export const webp = Buffer.from('524946461a000000574542505650384c0d0000002f00000010071011118888fe0700', 'hex')
export const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')
export const zip = Buffer.from('PK\x05\x06'.padEnd(22, '\0'), 'latin1')

export const inline = (bytes: Uint8Array, mimeType = 'image/png') => ({
  inlineData: { mimeType, data: Buffer.from(bytes).toString('base64') },
})

/** Returns the response body of the image endpoint with these parts. */
export const imageAnswer = (...parts: object[]) =>
  JSON.stringify({
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 1290, totalTokenCount: 1294 },
    modelVersion: 'alpha-image',
  })
