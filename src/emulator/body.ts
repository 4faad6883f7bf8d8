import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest } from '../wire/exchange.ts'
import { describeIssues, tooDeep, tryParseJson } from '../wire/json/parse.ts'
import { type EmulatedResponse, errorResponse } from './response.ts'

/** The most problems of a body in an answer, and the most characters of each. */
const [mostTold, longestTold] = [20, 300]

/** A request's JSON as its endpoint's schema wants it, or the refusal. */
export async function checkBody(
  request: HttpRequest,
  schema: NonNullable<Endpoint['request']>,
): Promise<{ body: unknown } | { refusal: EmulatedResponse }> {
  if (!/^application\/json\s*(;|$)/i.test(header(request.headers, 'content-type') ?? '')) {
    return refuse(400, 'the content type must be application/json')
  }
  const body = tryParseJson(Buffer.from(request.body ?? []).toString())
  if (body === undefined) return refuse(400, `the body is not JSON, or is ${tooDeep}`)
  const parsed = (await schema()).safeParse(body)
  return parsed.success ? { body } : refuse(400, tellProblems(describeIssues(parsed.error)))
}

function tellProblems(problems: string[]): string {
  const told = problems.slice(0, mostTold).map((problem) => problem.slice(0, longestTold))
  const rest = problems.length - told.length
  return told.join('; ') + (rest > 0 ? `; and ${rest} more` : '')
}

const refuse = (...problem: Parameters<typeof errorResponse>) => ({ refusal: errorResponse(...problem) })

export const header = (headers: Record<string, string>, name: string): string | undefined =>
  Object.entries(headers).find(([candidate]) => candidate.toLowerCase() === name)?.[1]
