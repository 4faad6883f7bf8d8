import { splitDataUris } from './data-uri.ts'
import type { SparseJson } from './sparse-json.ts'
import * as z from './zod.ts'

/** An image in an answer: its base64, or a link to it. */
export type FoundImage = { mimeType: string | undefined } & ({ base64: Uint8Array } | { uri: string })

/** What an answer shows: its images in their order, and its text without them. */
export interface Findings {
  images: FoundImage[]
  texts: string[]
}

/** A field of another type than known counts as absent: nothing may cost an image that was paid for. */
const lenient = <T extends z.ZodMiniType>(schema: T) => z.catch(z.optional(schema), undefined)

const text = lenient(z.string())
const Blob = z.looseObject({ mimeType: text, mime_type: text, data: text })
const Reference = z.looseObject({ mimeType: text, mime_type: text, fileUri: text, file_uri: text })

/** One part in any known spelling (`spec/beyond.md`, the native format); it can hold several things at once. */
const Part = z.looseObject({
  text,
  thought: lenient(z.boolean()),
  inlineData: lenient(Blob),
  inline_data: lenient(Blob),
  fileData: lenient(Reference),
  file_data: lenient(Reference),
})
type Part = z.infer<typeof Part>

const parts = lenient(z.array(z.catch(Part, {})))

/** The native shape, and beside it the message shape, whose content blocks are like parts. */
const ImageAnswer = z.looseObject({
  candidates: lenient(z.array(z.catch(z.looseObject({ content: lenient(z.looseObject({ parts })) }), {}))),
  content: parts,
})

/** Finds the images in an answer of any known shape. An image in a thought counts, a thought's text does not. */
export function findImages({ value, bytesOf }: SparseJson): Findings {
  const findings: Findings = { images: [], texts: [] }
  const parsed = ImageAnswer.safeParse(value)
  if (!parsed.success) return findings
  const { candidates = [], content = [] } = parsed.data
  for (const part of [...candidates.flatMap((candidate) => candidate.content?.parts ?? []), ...content]) {
    addText(part, bytesOf, findings)
    addData(part, bytesOf, findings)
    addLink(part, findings)
  }
  return findings
}

function addText({ text, thought }: Part, bytesOf: SparseJson['bytesOf'], { images, texts }: Findings): void {
  if (text === undefined) return
  const split = splitDataUris(new TextDecoder().decode(bytesOf(text)))
  images.push(...split.images)
  if (!thought && split.text.trim() !== '') texts.push(split.text)
}

function addData(part: Part, bytesOf: SparseJson['bytesOf'], { images }: Findings): void {
  for (const blob of [part.inlineData, part.inline_data]) {
    if (blob?.data === undefined) continue
    images.push({ mimeType: blob.mimeType ?? blob.mime_type, base64: bytesOf(blob.data) })
  }
}

function addLink(part: Part, { images }: Findings): void {
  for (const reference of [part.fileData, part.file_data]) {
    const uri = reference?.fileUri ?? reference?.file_uri
    if (uri === undefined) continue
    const [inline] = splitDataUris(uri).images
    images.push(inline ?? { mimeType: reference?.mimeType ?? reference?.mime_type, uri })
  }
}
