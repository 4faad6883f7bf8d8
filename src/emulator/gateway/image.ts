import { crc32, deflateSync } from 'node:zlib'
import type { GenerateRequest } from '../../wire/gateway/generate-request.ts'
import { createRandom, tokensIn } from '../random.ts'
import { type EmulatedResponse, jsonResponse } from '../response.ts'

/** The image endpoint's success body (gateway, 2.2): a text part, and a picture as the family shows it. */
export function imageResponse(request: GenerateRequest, model: string): EmulatedResponse {
  const texts = (request.contents ?? []).flatMap((turn) => (turn.parts ?? []).map((part) => part.text ?? ''))
  const promptTokens = Math.max(1, tokensIn(texts.join(' ')))
  const picture = paint(createRandom([model, ...texts]))
  const parts = [
    { text: 'A colour, chosen by an emulator that cannot read.' },
    { inlineData: { mimeType: 'image/png', data: picture.toString('base64') } },
  ]
  return jsonResponse(200, {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: 1290,
      totalTokenCount: promptTokens + 1290,
      thoughtsTokenCount: 0,
    },
    modelVersion: model,
  })
}

/** Pixels. */
const size = 256

/** A PNG of one colour that fades from top to bottom. */
function paint(random: () => number): Buffer {
  const colour = [random(), random(), random()]
  const rows = Buffer.alloc(size * (1 + 3 * size))
  for (let y = 0; y < size; y++)
    for (let x = 0; x < 3 * size; x++)
      rows[y * (1 + 3 * size) + 1 + x] = Math.round(255 * (colour[x % 3] ?? 0) * (1 - y / (2 * size)))
  const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0])
  head.writeUInt32BE(size, 0)
  head.writeUInt32BE(size, 4)
  const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')
  return Buffer.concat([signature, chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND')])
}

function chunk(type: string, data = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
