import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { agentHeaders, type RequestParts } from '../http/request.ts'
import { readUtf8 } from '../io/utf8.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { editJson, parseAssignment } from '../wire/json/edit.ts'
import { encodeJson } from '../wire/json/encoder.ts'
import { describeJsonError, parseJson } from '../wire/json/parse.ts'
import { readPath } from './path.ts'

export interface RequestOptions {
  method?: string
  input?: string
  set?: string[]
}

export interface ApiRequest {
  endpoint: Endpoint
  parts: RequestParts
}

const services: readonly string[] = ['gateway', 'agents'] satisfies Endpoint['service'][]

/** Builds the request from the words, flags and input of the command. Throws a usage error. */
export async function readRequest(
  context: Context,
  { values }: Pick<ResolvedSettings, 'values'>,
  { words: [service = '', path = ''], options }: { words: string[]; options: RequestOptions },
): Promise<ApiRequest> {
  if (!isService(service)) throw usage(`there is no service '${service}': it is gateway or agents`)
  const { names, query } = readPath(path, values[addressOf(service)])
  const hasBody = options.input !== undefined || (options.set ?? []).length > 0
  const method = readMethod(options.method, hasBody)
  if (hasBody && (method === 'GET' || method === 'HEAD')) throw usage(`${method} takes no body`)
  const body = hasBody ? await readBody(context, options) : undefined
  return {
    endpoint: { service, method, path: names, repeat: repeatOf(method, context), accept: '*/*' },
    parts: {
      params: {},
      query,
      headers: service === 'agents' ? agentHeaders(values, values.betas) : {},
      body,
    },
  }
}

const isService = (word: string): word is Endpoint['service'] => services.includes(word)

/** A request that only reads may be sent again, another one if the caller says that a repeat does no harm. */
const repeatOf = (method: Endpoint['method'], { flags }: Context): Endpoint['repeat'] =>
  readingMethods.includes(method) ? 'always' : flags.retryUnknown ? 'failed' : 'not-taken'

const readingMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

const methods: readonly string[] = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
] satisfies Endpoint['method'][]

function readMethod(given: string | undefined, hasBody: boolean): Endpoint['method'] {
  if (given === undefined) return hasBody ? 'POST' : 'GET'
  if (!methods.includes(given)) throw usage(`-X: '${given}' is none of ${methods.join(', ')}`)
  return given as Endpoint['method']
}

async function readBody(context: Context, { input, set = [] }: RequestOptions): Promise<Uint8Array> {
  const { input: inputs, flags } = context
  const assignments = set.map(parseAssignment)
  const name = input === undefined || input === '-' ? 'stdin' : input
  const given = input === undefined ? Buffer.from('{}') : await inputs.bytes(input, '-i -')
  const isOther = flags.header?.some((line) => /^content-type:(?!.*json)/i.test(line)) ?? false
  if (isOther && assignments.length === 0) return given
  const text = await readUtf8(given, name)
  try {
    parseJson(text)
  } catch {
    const way = "other bodies need -H 'Content-Type: TYPE'"
    throw usage(`${name}: not valid JSON: ${await describeJsonError(text)}; ${way}`)
  }
  const body = encodeJson([{ json: editJson(text, assignments) }])
  if (!body) throw usage('the body is longer than 512 MiB, the most that can be sent')
  return body
}
