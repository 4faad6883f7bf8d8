import { createCaller } from '../calls/caller.ts'
import { readSettings } from '../calls/settings.ts'
import type { Context } from '../context.ts'
import { CliError, usage } from '../errors.ts'
import { type FileOutput, openFileOutput } from '../io/file-output.ts'
import { keepingPart } from '../io/kept-part.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { paginate } from './paginate.ts'
import { createPrinter, type Printer } from './printer.ts'
import { type RequestOptions, readRequest } from './request.ts'

export interface ApiOptions extends RequestOptions {
  output?: string | undefined
  include?: boolean | undefined
  paginate?: boolean | undefined
}

/** Calls any endpoint of a service and prints what it answers, byte for byte. */
export async function callApi(context: Context, options: ApiOptions, words: string[]): Promise<void> {
  const settings = await readSettings(context)
  const { endpoint, parts } = await readRequest(context, settings, { words, options })
  const isReading = endpoint.repeat === 'always'
  if (options.paginate && endpoint.method !== 'GET') throw usage('--paginate is for GET only')
  if (options.paginate && options.include) throw usage('--paginate and --include exclude each other')
  const file = await openFile(context, options.output)
  // The answer's body is printed here, whatever its status.
  const flags = {
    ...context.flags,
    raw: false,
    retryUnknown: isReading ? undefined : context.flags.retryUnknown,
  }
  const caller = createCaller({ ...context, flags }, settings)
  if (await caller.preview(endpoint, parts)) return
  if (isReading) context.whenInterrupted(() => undefined)
  const print = createPrinter(context.output, options.include ?? false)
  const printWhole = file ? createPrinter(file, options.include ?? false) : print
  try {
    await keepingPart(context, file, async () => {
      if (options.paginate) await paginate(caller, { endpoint, parts, settings }, file ?? context.output)
      else await caller.call(endpoint, parts, (answer) => printAnswer(printWhole, answer))
      await file?.commit()
    })
  } catch (error) {
    if (error instanceof CliError) await printRefusal(print, error)
    throw error
  }
}

async function printAnswer(print: Printer, answer: HttpResponse): Promise<void> {
  await print.head(answer)
  for await (const chunk of answer.body) await print.body(chunk)
  await print.end()
}

/** The body of a failure is printed too: on stdout, for it is not what a file is for. */
async function printRefusal(print: Printer, { details: { head, rawBody } }: CliError): Promise<void> {
  if (!head || !rawBody) return
  await print.head(head)
  await print.body(rawBody)
  await print.end()
}

async function openFile({ host }: Context, name: string | undefined): Promise<FileOutput | undefined> {
  return name === undefined || name === '-' ? undefined : openFileOutput(name, host.cwd)
}
