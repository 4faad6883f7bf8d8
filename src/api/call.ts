import { isUtf8 } from 'node:buffer'
import { AnswerWriter } from '../content/saved-answer.ts'
import type { Context } from '../context.ts'
import { CliError, joinFailures, toFailure, usageError } from '../errors.ts'
import { createServiceCaller, type ServiceCaller } from '../http/call.ts'
import { createAgentHeaders, type RequestParts } from '../http/request.ts'
import { decodeUtf8 } from '../io/file-content.ts'
import { type FileOutput, openFileOutput } from '../io/file-output.ts'
import type { Output } from '../io/output.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import { addFileToReport } from '../report-data.ts'
import { addressSettings, type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { createBodyCollector, type HttpResponse, readBody } from '../wire/exchange.ts'
import { editJson, parseSetFlag } from '../wire/json/edit.ts'
import { parseInputJson, tryParseJson } from '../wire/json/parse.ts'
import { createTextWithinLimit } from '../wire/json/text-limit.ts'
import { readListPage, readPages } from '../wire/page.ts'
import {
  createErrorBodyFailure,
  createResponseError,
  isErrorEnvelope,
  parseSseValues,
} from '../wire/problem/problem.ts'

export interface ApiOptions {
  method?: Endpoint['method']
  input?: string
  set?: string[]
  output?: string
  include?: boolean
  paginate?: boolean
}

export async function callApi(context: Context, options: ApiOptions, words: string[]): Promise<void> {
  const settings = await readSettings(context)
  const { endpoint, parts } = await readRequest(context, settings, words, options)
  const { output: name, include: hasHead = false, paginate = false } = options
  if (paginate && endpoint.method !== 'GET') throw usageError('--paginate works only with the method GET')
  const file = name === undefined || name === '-' ? undefined : await openFileOutput(name, context)
  const caller = createServiceCaller(context, settings)
  if (await caller.preview(endpoint, parts)) return
  const output = file ?? context.output
  const writer = new AnswerWriter(context, 'bin')
  try {
    context.tracker.requests = endpoint.repeat === 'always' ? 'reads' : 'changes'
    const save = () => [file?.savePart(), writer.part]
    await context.tracker.during({ save }, async () => {
      if (paginate) await printAllPages(caller, endpoint, parts, output)
      else
        await caller.call(endpoint, parts, async (response) => {
          const start = await printResponse(response, { output, hasHead, writer })
          requireNoError(response, start, file)
        })
      await file?.commit()
    })
    if (file && name) addFileToReport(context.reportData, name)
  } catch (error) {
    if (!hasHead || !(error instanceof CliError && error.details.response)) throw error
    const { response } = error.details
    const bytes = Buffer.concat([Buffer.from(formatHead(response)), response.bytes])
    throw error.with({ response: { ...response, bytes } })
  }
}

async function readRequest(
  context: Context,
  { values }: ResolvedSettings,
  [word, given = '']: string[],
  options: ApiOptions,
): Promise<{ endpoint: Endpoint; parts: RequestParts }> {
  const service = word as Endpoint['service']
  const { path, query } = readPath(given, values[addressSettings[service]])
  const hasBody = options.input !== undefined || (options.set ?? []).length > 0
  const method = options.method ?? (hasBody ? 'POST' : 'GET')
  if (hasBody && (method === 'GET' || method === 'HEAD'))
    throw usageError(`${method} cannot send a body: remove -i and --set, or choose another method with -X`)
  const body = hasBody ? await readRequestBody(context, options) : undefined
  return {
    endpoint: { service, method, path, repeat: getRepeatRule(method, context), accept: '*/*' },
    parts: {
      params: {},
      query,
      headers: service === 'agents' ? createAgentHeaders(values, values.betas) : {},
      body,
    },
  }
}

const getRepeatRule = (method: Endpoint['method'], { flags }: Context): Endpoint['repeat'] =>
  readingMethods.includes(method) ? 'always' : flags.retryUnknown ? 'failed' : 'unaccepted'

const readingMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

async function readRequestBody(context: Context, { input, set = [] }: ApiOptions): Promise<Uint8Array> {
  const { input: inputs, flags } = context
  const assignments = set.map(parseSetFlag)
  const name = input === undefined || input === '-' ? 'stdin' : input
  const given = input === undefined ? Buffer.from('{}') : await inputs.readBytes(input, '-i -')
  const isOther = flags.header?.some((line) => /^content-type:(?!.*json)/i.test(line)) ?? false
  if (isOther && assignments.length === 0) return given
  const text = decodeUtf8(given, name)
  parseInputJson(text, name, "a body that is not JSON needs -H 'Content-Type: TYPE'")
  return Buffer.from(createTextWithinLimit(() => editJson(text, assignments)))
}

/**
 * Splits a path or a URL into path and query. A URL must begin with `address`, the address of the service.
 * Throws a usage error for a path that a server could resolve to another path.
 */
function readPath(given: string, address: string | undefined) {
  const own = /^[a-z][a-z0-9+.-]*:/i.test(given) ? stripAddress(given, address) : given
  const text = own.startsWith('/') ? own : `/${own}`
  // `URL` encodes or removes characters that cannot be sent unchanged. The path then differs from `text`, and
  // parley refuses it.
  const { pathname: path, search } = new URL(`http://host${text}`)
  if (given === '' || path + search !== text.replace(/\?$/, '') || hasDotSegment(path))
    throw usageError(
      `'${given}': a path must not be empty, and must not have a segment . or .., a fragment (#), or a character that must be percent-encoded`,
    )
  return { path, query: search.slice(1) }
}

/** Throws a usage error for the URL of another server, which must not receive the credential. */
function stripAddress(url: string, address: string | undefined): string {
  const base = address?.replace(/\/+$/, '') ?? ''
  const rest = url.slice(base.length)
  if (base === '' || !url.startsWith(base) || !/^([/?]|$)/.test(rest))
    throw usageError(`give the path only, or a URL that begins with ${base || "the service's address"}`)
  return rest
}

/**
 * Finds a segment `.` or `..`. Also finds encoded dots, because a server may decode a path repeatedly. Also
 * finds dots before `;`, because some servers drop the rest of such a segment.
 */
const hasDotSegment = (path: string): boolean =>
  /(?:^|[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\;]|%(?:25)*(?:2f|5c|3b))/i.test(path)

function formatHead({ status, statusText, headers }: Omit<HttpResponse, 'body' | 'close'>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`)
  return `HTTP/1.1 ${status}${statusText && ` ${statusText}`}\n${lines.join('')}\n`
}

/**
 * Prints the response and returns the start of its body. If printing fails, saves the rest of the body and
 * then throws the failure.
 */
async function printResponse(
  response: HttpResponse,
  { output, hasHead, writer }: { output: Output; hasHead: boolean; writer: AnswerWriter },
): Promise<Uint8Array> {
  const printer = createRawPrinter(output)
  const print = (chunk: Uint8Array | string) =>
    writer.attempt(async () => {
      printer.add(chunk)
      await printer.write()
      await output.flush()
    })
  const start = createBodyCollector(maxErrorBytes)
  let cut: unknown
  if (hasHead) await print(formatHead(response))
  try {
    for await (const chunk of response.body) {
      start.add(chunk)
      writer.queue(chunk)
      await print(chunk)
    }
  } catch (error) {
    cut = error
  }
  await writer.attempt(() => printer.end())
  if (writer.failure) throw joinFailures(toFailure(writer.failure), cut)
  if (cut) throw cut
  return start.bytes()
}

/** A larger body with status 2xx is not checked for an error, because parley does not keep it in memory. */
const maxErrorBytes = 64 * 1024

/**
 * Throws a `CliError` if a body with status 2xx is an error, or a stream of one error. Then no file is written,
 * and stdout gets the body instead.
 */
function requireNoError(response: HttpResponse, bytes: Uint8Array, file: FileOutput | undefined): void {
  const text = bytes.length < maxErrorBytes ? Buffer.from(bytes).toString() : ''
  const [event, ...others] = parseSseValues(text).filter((each) => each !== undefined)
  const value = tryParseJson(text) ?? (others.length === 0 ? event : undefined)
  if (!isErrorEnvelope(value)) return
  file?.discard()
  const failure = createErrorBodyFailure(value)
  throw file && !file.isDirect ? failure.with({ response: { ...response, bytes } }) : failure
}

async function printAllPages(
  caller: ServiceCaller,
  endpoint: Endpoint,
  parts: RequestParts,
  output: Output,
): Promise<void> {
  const printer = createRawPrinter(output)
  const { query = '' } = parts
  const fields = query.split('&').filter((field) => field !== '' && !/^(page|after_id)(=|$)/.test(field))
  const pages = readPages('the list', (cursor) => {
    const pageQuery = cursor === undefined ? query : [...fields, cursor].join('&')
    return caller.call(endpoint, { ...parts, query: pageQuery }, async ({ body }) =>
      readItems(await readBody(body)),
    )
  })
  for await (const { items } of pages) {
    for (const item of items) printer.add(`${item}\n`)
    await printer.write()
  }
  await printer.end()
}

function readItems(bytes: Uint8Array) {
  if (!isUtf8(bytes)) throw createResponseError('the list is not UTF-8 text')
  const { texts: items, next } = readListPage(bytes, 'the list')
  return { items, next }
}
