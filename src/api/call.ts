import { isUtf8 } from 'node:buffer'
import { UnprintedBody } from '../content/saved-answer.ts'
import type { Context } from '../context.ts'
import { CliError, joinFailures, toFailure, usageError } from '../errors.ts'
import { createServiceCaller, type ServiceCaller } from '../http/call.ts'
import { createAgentHeaders, type RequestParts } from '../http/request.ts'
import { decodeUtf8, tryDecodeUtf8 } from '../io/file-content.ts'
import { type FileOutput, openFileOutput, type PartSaver, saveParts } from '../io/file-output.ts'
import { FailureStoringWriter, type Output } from '../io/output.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import { addressSettings, type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import { addSummaryFile } from '../summary.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import { createBodyCollector, type HttpResponse, readBody } from '../wire/exchange.ts'
import { requireTextFits } from '../wire/json/body-text.ts'
import { editJson, parseAssignment } from '../wire/json/edit.ts'
import { parseGivenJson, tryParseJson } from '../wire/json/parse.ts'
import { createPageHistory, type ListPage, type PageCursor, readListPage } from '../wire/page.ts'
import { createErrorBodyFailure, createResponseError, isErrorEnvelope } from '../wire/problem/problem.ts'

export interface ApiOptions {
  method?: Endpoint['method']
  input?: string
  set?: string[]
  output?: string
  include?: boolean
  paginate?: boolean
}

interface ApiRequest {
  endpoint: Endpoint
  parts: RequestParts
}

/** Runs `parley api`: sends one request and prints the body of its response byte for byte. */
export async function callApi(context: Context, options: ApiOptions, words: string[]): Promise<void> {
  const settings = await readSettings(context)
  const { endpoint, parts } = await readRequest(context, settings, words, options)
  const { output: name, include: hasHead = false } = options
  if (options.paginate && endpoint.method !== 'GET')
    throw usageError('--paginate works only with the method GET')
  if (options.paginate && hasHead) throw usageError('--paginate and --include exclude each other')
  const file = name === undefined || name === '-' ? undefined : await openFileOutput(name, context)
  const caller = createServiceCaller(context, settings)
  if (await caller.preview(endpoint, parts)) return
  const print = createPrinter(context.output, hasHead)
  const saving = createSavingPrinter(context, file ? createPrinter(file, hasHead) : print)
  async function callAndPrint(): Promise<void> {
    if (options.paginate) await paginate(caller, { endpoint, parts, settings }, file ?? context.output)
    else await caller.call(endpoint, parts, (response) => printResponse(saving, response, file))
    await file?.commit()
    if (file && name) addSummaryFile(context.summary, name)
  }
  try {
    const isChange = endpoint.repeat !== 'always'
    await context.tracker.during({ isChange, ...saveParts(file, saving) }, callAndPrint)
  } catch (error) {
    // With --paginate, the body of an error response is not printed, because a reader could take it for an
    // item of the list.
    if (error instanceof CliError && !options.paginate) await printFailureBody(print, error)
    throw error
  }
}

async function readRequest(
  context: Context,
  { values }: ResolvedSettings,
  [word, given = '']: string[],
  options: ApiOptions,
): Promise<ApiRequest> {
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

/**
 * Returns when parley may repeat a request. It always may if the request only reads. Otherwise it may only if
 * the service certainly did not accept the request, or with `--retry-unknown`.
 */
const getRepeatRule = (method: Endpoint['method'], { flags }: Context): Endpoint['repeat'] =>
  readingMethods.includes(method) ? 'always' : flags.retryUnknown ? 'failed' : 'unaccepted'

const readingMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

async function readRequestBody(context: Context, { input, set = [] }: ApiOptions): Promise<Uint8Array> {
  const { input: inputs, flags } = context
  const assignments = set.map(parseAssignment)
  const name = input === undefined || input === '-' ? 'stdin' : input
  const given = input === undefined ? Buffer.from('{}') : await inputs.readBytes(input, '-i -')
  const isOther = flags.header?.some((line) => /^content-type:(?!.*json)/i.test(line)) ?? false
  if (isOther && assignments.length === 0) return given
  const text = decodeUtf8(given, name)
  parseGivenJson(text, name, "a body that is not JSON needs -H 'Content-Type: TYPE'")
  return Buffer.from(requireTextFits(() => editJson(text, assignments)))
}

/**
 * Splits a path or a URL into path and query. `address` is the service's configured address. Throws a usage
 * error for a path that a server could resolve to another path.
 */
function readPath(given: string, address: string | undefined) {
  const own = /^[a-z][a-z0-9+.-]*:/i.test(given) ? stripAddress(given, address) : given
  const text = own.startsWith('/') ? own : `/${own}`
  // `URL` encodes or removes characters that cannot be sent unchanged. Such a path differs from `text` and is
  // refused.
  const { pathname: path, search } = new URL(`http://host${text}`)
  if (given === '' || path + search !== text.replace(/\?$/, '') || hasDotSegment(path))
    throw usageError(
      'a path must not be empty, and must not have a segment . or .., a fragment (#), or a character that must be percent-encoded',
    )
  return { path, query: search.slice(1) }
}

/**
 * Removes the service's address from a URL. Throws a usage error for the URL of another server, because that
 * server must not receive the credential.
 */
function stripAddress(url: string, address: string | undefined): string {
  const base = address?.replace(/\/+$/, '') ?? ''
  const rest = url.slice(base.length)
  if (base === '' || !url.startsWith(base) || !/^([/?]|$)/.test(rest))
    throw usageError("give the path only, or a URL that begins with the service's address")
  return rest
}

/**
 * Returns whether a segment is `.` or `..`. Encoded dots count, because a server may decode a path repeatedly.
 * Segments with `;` count, because some servers drop the rest of such a segment.
 */
const hasDotSegment = (path: string): boolean =>
  /(?:^|[/\\]|%(?:25)*(?:2f|5c))(?:\.|%(?:25)*2e){1,2}(?:$|[/\\;]|%(?:25)*(?:2f|5c|3b))/i.test(path)

async function printResponse(
  print: Printer,
  response: HttpResponse,
  file: FileOutput | undefined,
): Promise<void> {
  const start = createBodyCollector(maxErrorBytes)
  await print.head(response)
  try {
    for await (const chunk of response.body) {
      start.add(chunk)
      await print.body(chunk)
    }
  } catch (error) {
    await print.end().catch((refusal: unknown) => {
      throw joinFailures(refusal, error)
    })
    throw error
  }
  await print.end()
  const bytes = start.bytes()
  const value = bytes.length < maxErrorBytes && tryParseJson(Buffer.from(bytes).toString())
  if (!isErrorEnvelope(value)) return
  file?.discard()
  const failure = createErrorBodyFailure(value)
  throw file && !file.isDirect ? failure.with({ response: { ...response, bytes } }) : failure
}

/** A larger body with status 2xx is printed without a check for an error envelope. */
const maxErrorBytes = 64 * 1024

/**
 * Prints the body of an error response on stdout, because the file of `-o` gets only successful responses.
 */
async function printFailureBody(print: Printer, { details: { response } }: CliError): Promise<void> {
  if (!response) return
  try {
    await print.head(response)
    await print.body(response.bytes)
  } catch (error) {
    // For a binary body on a terminal, `print` throws a `CliError`. The caller throws the failure of the
    // response instead, because that failure names the status.
    if (!(error instanceof CliError)) throw error
  } finally {
    await print.end()
  }
}

interface Printer {
  head(answer: Pick<HttpResponse, 'status' | 'statusText' | 'headers'>): Promise<void>
  /** Throws a `CliError` of kind `file` for a binary body on a terminal. */
  body(chunk: Uint8Array): Promise<void>
  end(): Promise<void>
}

function createPrinter(output: Output, hasHead: boolean): Printer {
  const printer = createRawPrinter(output)
  let isFirst = true
  return {
    async head({ status, statusText, headers }) {
      if (!hasHead) return
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`)
      printer.add(`HTTP/1.1 ${status}${statusText && ` ${statusText}`}\n${lines.join('')}\n`)
      await printer.write()
    },
    async body(chunk) {
      if (isFirst && output.isTerminal && isBinary(chunk)) {
        throw new CliError('file', 'the answer is not text: redirect stdout, or give -o FILE', {
          sent: 'yes',
        })
      }
      isFirst = false
      printer.add(chunk)
      await printer.write()
      await output.flush()
    },
    end: () => printer.end(),
  }
}

/**
 * Returns a printer that saves the rest of the body in the temporary folder if printing fails. `end` then
 * throws the failure of the output.
 */
function createSavingPrinter(context: Context, printer: Printer): Printer & PartSaver {
  const unprinted = new UnprintedBody(context, 'bin')
  const writer = new FailureStoringWriter(() => unprinted.reject())

  return {
    head: (answer) => writer.run(() => printer.head(answer)),
    async body(chunk) {
      unprinted.add(chunk)
      await writer.run(async () => {
        await printer.body(chunk)
        unprinted.accept()
      })
    },
    async end() {
      await writer.run(() => printer.end())
      if (writer.failure) throw toFailure(writer.failure)
    },
    savePart: () => unprinted.part,
  }
}

/**
 * Returns whether the bytes are not text. Ignores up to three bytes at the end, because a chunk may end inside
 * of a character.
 */
const isBinary = (chunk: Uint8Array): boolean =>
  chunk.includes(0) || ![undefined, -1, -2, -3].some((end) => isUtf8(chunk.subarray(0, end)))

/** Requests all pages of a list and prints its items unchanged, one per line. Throws a `CliError`. */
async function paginate(
  caller: ServiceCaller,
  { endpoint, parts, settings }: ApiRequest & { settings: ResolvedSettings },
  output: Output,
): Promise<void> {
  const printer = createRawPrinter(output)
  const history = createPageHistory('the list')
  const address = settings.values[addressSettings[endpoint.service]]
  let next = { path: endpoint.path, query: parts.query ?? '' }
  let by = 'next_page'
  for (;;) {
    history.addMark(`${next.path}?${next.query}`, `${by} repeats`)
    const request = { ...parts, query: next.query }
    const page = await caller.call({ ...endpoint, path: next.path }, request, async ({ body }) =>
      readItems(await readBody(body)),
    )
    for (const item of page.texts) printer.add(`${item}\n`)
    await printer.write()
    const cursor = page.next()
    if (!cursor) return printer.end()
    history.addPage(page.texts.length)
    by = cursor.name === 'page' ? 'next_page' : 'last_id'
    next = resolveNextPage(next, cursor, address)
  }
}

function readItems(bytes: Uint8Array): ListPage {
  const text = tryDecodeUtf8(bytes)
  if (text === undefined) throw createResponseError('the list is not UTF-8 text')
  return readListPage(text, 'the list')
}

/**
 * Returns the path and query of the next page. Throws a `CliError` for the URL of another server, because that
 * server must not receive the credential.
 */
function resolveNextPage(
  { path, query }: ReturnType<typeof readPath>,
  { name, value }: PageCursor,
  address: string | undefined,
) {
  try {
    if (/^https?:\/\//i.test(value)) return readPath(value, address)
  } catch (error) {
    throw createResponseError(`next_page cannot be followed: ${(error as Error).message}`)
  }
  const kept = query.split('&').filter((field) => field !== '' && !/^(page|after_id)(=|$)/.test(field))
  return { path, query: [...kept, `${name}=${encodeURIComponent(value)}`].join('&') }
}
