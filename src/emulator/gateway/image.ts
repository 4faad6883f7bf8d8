import type { GenerateRequest } from '../../wire/gateway/generate-request.ts'
import { type EmulatedResponse, jsonResponse } from '../response.ts'
import { tokensIn } from './chat.ts'

/** A PNG of one colour. */
const picture =
  'iVBORw0KGgoAAAANSUhEUgAAACAAAAAgAQMAAABJtOi3AAAAA1BMVEUuoG6RpKaGAAAADElEQVR42mNgGNwAAACgAAGO+7G0AAAAAElFTkSuQmCC'

/** The image endpoint's success body (gateway, 2.2): a text part, and a picture as the family shows it. */
export function imageResponse(request: GenerateRequest, model: string): EmulatedResponse {
  const texts = (request.contents ?? []).flatMap((turn) => (turn.parts ?? []).map((part) => part.text ?? ''))
  const promptTokens = Math.max(1, tokensIn(texts.join(' ')))
  const parts = [
    { text: 'A colour, chosen by an emulator that cannot read.' },
    { inlineData: { mimeType: 'image/png', data: picture } },
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
