import { encode } from 'fast-png'
import type { GenerateRequest } from '../../wire/gateway/generate-request.ts'
import { createRandom } from '../random.ts'
import { type EmulatedResponse, jsonResponse } from '../response.ts'
import { tokensIn } from '../tokens.ts'

/** Pixels. */
const size = 256

/** The image endpoint's success body (gateway, 2.2): a text part, and a picture as the family shows it. */
export function imageResponse(request: GenerateRequest, model: string, seed: string): EmulatedResponse {
  const texts = (request.contents ?? []).flatMap((turn) => (turn.parts ?? []).map((part) => part.text ?? ''))
  const picture = draw(createRandom([seed, model, ...texts]))
  const promptTokens = Math.max(1, tokensIn(texts.join(' ')))
  return jsonResponse(200, {
    candidates: [
      {
        content: {
          role: 'model',
          parts: [
            { text: 'Coloured discs, drawn by an emulator that cannot read.' },
            { inlineData: { mimeType: 'image/png', data: Buffer.from(picture).toString('base64') } },
          ],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: {
      promptTokenCount: promptTokens,
      candidatesTokenCount: 1290,
      totalTokenCount: promptTokens + 1290,
      thoughtsTokenCount: 0,
    },
    modelVersion: model,
  })
}

interface Disc {
  x: number
  y: number
  radius: number
  colour: Colour
}

type Colour = [red: number, green: number, blue: number]

/** A PNG of some discs on a ground that fades from top to bottom. */
function draw(random: () => number): Uint8Array {
  const hue = random()
  const [top, bottom] = [colourOf(hue, 0.9), colourOf(hue + 0.1, 0.5)]
  const discs: Disc[] = Array.from({ length: 3 + Math.floor(random() * 5) }, () => ({
    x: random() * size,
    y: random() * size,
    radius: size * (0.06 + random() * 0.2),
    colour: colourOf(hue + 0.3 + random() * 0.4, 0.5 + random() * 0.5),
  }))
  const data = new Uint8Array(size * size * 3)
  for (let y = 0; y < size; y++) {
    const ground = mix(top, bottom, y / size)
    for (let x = 0; x < size; x++) {
      const disc = discs.findLast((each) => Math.hypot(x - each.x, y - each.y) < each.radius)
      data.set(disc?.colour ?? ground, (y * size + x) * 3)
    }
  }
  return encode({ width: size, height: size, channels: 3, data })
}

/** A hue, of which only the fraction counts, at a brightness between 0 and 1. */
function colourOf(hue: number, brightness: number): Colour {
  const channel = (shift: number) =>
    Math.round(255 * brightness * (0.55 + 0.45 * Math.cos(2 * Math.PI * (hue + shift))))
  return [channel(0), channel(1 / 3), channel(2 / 3)]
}

const mix = (from: Colour, to: Colour, part: number): Colour =>
  from.map((value, channel) => Math.round(value + ((to[channel] ?? 0) - value) * part)) as Colour
