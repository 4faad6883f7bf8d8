import type { Context } from '../../context.ts'
import { createRawPrinter } from '../../terminal/raw-printer.ts'
import { type AnswerSummary, createAnswerReader } from '../../wire/answer.ts'
import { collectLong, type HttpResponse } from '../../wire/exchange.ts'
import { type Findings, findImages } from '../../wire/images.ts'
import { notUnderstood, parseBody } from '../../wire/json-body.ts'
import { parseSparse } from '../../wire/sparse-json.ts'

export interface ImageAnswer extends Findings {
  summary: AnswerSummary
}

/**
 * Reads an answer, with `--raw` printing its bytes as they come. Throws a `CliError` where there is no image in
 * it, with the reason and the text that the service gave instead.
 */
export async function readImageAnswer(
  { flags, output }: Context,
  response: HttpResponse,
): Promise<ImageAnswer> {
  const { body } = response
  const bytes = await collectLong(flags.raw ? printed(body, createRawPrinter(output)) : body)
  const contentType = response.headers['content-type'] ?? ''
  const json = parseSparse(bytes, (text) => parseBody(text, contentType))
  const findings = findImages(json)
  const summary = summarize(json.value, findings.images.length > 0)
  if (findings.images.length > 0) return { ...findings, summary }

  const reason = summary.stopReason ? `: ${summary.stopReason}` : ''
  throw notUnderstood(`the answer holds no image${reason}`, findings.texts.join(' ') || undefined)
}

async function* printed(
  body: AsyncIterable<Uint8Array>,
  printer: ReturnType<typeof createRawPrinter>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    printer.add(chunk)
    await printer.write()
    yield chunk
  }
  await printer.end()
}

/** What surrounds the images may be as strange as it likes; without any it has to make sense. */
function summarize(value: unknown, hasImages: boolean): AnswerSummary {
  const reader = createAnswerReader()
  try {
    reader.addBody(value)
  } catch (error) {
    if (!hasImages) throw error
  }
  return reader.summary
}
