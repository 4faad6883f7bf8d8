import { answering } from '../harness/run.ts'

/** Creates a body or chunk with a text. `end` has the finish reason and other fields of the candidate. */
export const piece = (text: string, end: object = {}, more: object = {}) =>
  JSON.stringify({ candidates: [{ content: { role: 'model', parts: [{ text }] }, ...end }], ...more })

/** Creates the fields of a part that the next request continues with this token. */
export const continued = (continuationToken?: string) => ({ finishReason: 'CONTINUATION', continuationToken })

export const whole = { finishReason: 'STOP' }

/** Creates the token counts of one response. */
export const used = (promptTokenCount: number, candidatesTokenCount: number, cached?: number) => ({
  usageMetadata: { promptTokenCount, candidatesTokenCount, cachedContentTokenCount: cached },
})

/** Answers with these chunks as server-sent events. */
export const events = (...chunks: string[]) =>
  answering(
    chunks.map((chunk) => `data: ${chunk}\n\n`),
    { headers: { 'content-type': 'text/event-stream' } },
  )
