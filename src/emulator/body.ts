import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { describeIssues } from '../wire/json/parse.ts'
import { createWalk } from '../wire/json/scanner.ts'
import { type EmulatedResponse, errorResponse } from './response.ts'

/** The longest body after decoding, in bytes. */
const longest = 64 * 1024 * 1024

/** How many of a body's problems are told, and how much of each. */
const [mostTold, longestTold] = [20, 300]

/** A request's JSON as its endpoint's schema wants it, or the refusal. */
export async function checkBody(
  request: HttpRequest,
  schema: NonNullable<Endpoint['request']>,
): Promise<{ body: unknown } | { refusal: EmulatedResponse }> {
  if (!/^application\/json\s*(;|$)/i.test(header(request.headers, 'content-type') ?? '')) {
    return refuse(400, 'the content type must be application/json')
  }
  const decoded = await decode(request)
  if ('refusal' in decoded) return decoded
  const text = Buffer.from(decoded.bytes).toString()
  const excess = findExcess(text)
  if (excess) return refuse(400, `the body has ${excess}`)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return refuse(400, 'the body is not JSON')
  }
  const parsed = (await schema()).safeParse(body)
  return parsed.success ? { body } : refuse(400, tellProblems(describeIssues(parsed.error)))
}

function tellProblems(problems: string[]): string {
  const told = problems.slice(0, mostTold).map((problem) => problem.slice(0, longestTold))
  const rest = problems.length - told.length
  return told.join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

async function decode({
  headers,
  body,
}: HttpRequest): Promise<{ bytes: Uint8Array } | { refusal: EmulatedResponse }> {
  const bytes = body ?? new Uint8Array()
  const coding = (header(headers, 'content-encoding') ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return { bytes }
  if (coding !== 'gzip' && coding !== 'x-gzip') {
    return refuse(415, 'the content encoding must be gzip, or none', { 'accept-encoding': 'gzip' })
  }
  const { gunzip } = await import('node:zlib')
  return new Promise((resolve) => {
    gunzip(bytes, { maxOutputLength: longest }, (error, decoded) => {
      if (!error) resolve({ bytes: decoded })
      else if (error instanceof RangeError) resolve(refuse(413, 'the body is longer than 64 MiB'))
      else resolve(refuse(400, 'the body is not gzip'))
    })
  })
}

const refuse = (...problem: Parameters<typeof errorResponse>) => ({ refusal: errorResponse(...problem) })

export const header = (headers: Record<string, string>, name: string): string | undefined =>
  Object.entries(headers).find(([candidate]) => candidate.toLowerCase() === name)?.[1]

/** The most that is checked: beyond it a schema takes too long, or more stack than there is. */
const deepest = 1000
const mostValues = 50_000

/** What a JSON text has too much of, if anything. */
function findExcess(text: string): string | undefined {
  let depth = 0
  let values = 0
  createWalk()(text, (mark) => {
    if (mark === '{' || mark === '[') depth++
    else if (mark === '}' || mark === ']') depth--
    else if (mark === ',') values++
    return depth > deepest || values > mostValues
  })
  if (depth > deepest) return `more than ${deepest} objects and lists within each other`
  return values > mostValues ? `more than ${mostValues} values` : undefined
}
