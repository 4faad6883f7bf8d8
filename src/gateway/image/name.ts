import { GenerateRequest } from '../../wire/gateway/generate-request.ts'

const maxNameLength = 60

const maxPromptLength = 1000

/** Names that Windows reserves for devices, with any extension. */
const reserved = /^(con|prn|aux|nul|(com|lpt)[\d¹²³])$/

export function createImageName(prompt: string): string {
  const words = prompt
    .slice(0, maxPromptLength)
    .normalize('NFC')
    .toLowerCase()
    .match(/[\p{L}\p{N}][\p{L}\p{M}\p{N}]*/gu)
  const name = [...(words ?? []).join('-')].slice(0, maxNameLength).join('').replace(/-+$/, '')
  return reserved.test(name) ? `image-${name}` : name || 'image'
}

export function readPromptOfBody(body: string): string {
  const parsed = GenerateRequest().safeParse(JSON.parse(body))
  const parts = parsed.data?.contents?.at(-1)?.parts ?? []
  return parts.map((part) => part.text ?? '').join(' ')
}
