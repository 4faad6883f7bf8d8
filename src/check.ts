import type { Context } from './context.ts'
import { CliError, toFailure } from './errors.ts'
import { chooseChatModel } from './gateway/chat/chat.ts'
import { createServiceCaller, type ServiceCaller } from './http/call.ts'
import { createAgentHeaders } from './http/request.ts'
import { disableInlineCiCommands, toOneLine } from './io/escape.ts'
import { createLineWrapper } from './io/wrapping.ts'
import {
  computeDeadlineMs,
  formatProfileFlag,
  type ResolvedSettings,
  readSettings,
} from './settings/resolve.ts'
import { endpoints } from './wire/endpoints.ts'
import { readBody } from './wire/exchange.ts'
import { tryParseJson } from './wire/json/parse.ts'
import { isMarkup } from './wire/markup.ts'
import { readListPage } from './wire/page.ts'
import {
  createErrorBodyFailure,
  createUnexpectedBodyFailure,
  isErrorEnvelope,
} from './wire/problem/problem.ts'

const maxTimeoutSeconds = 30

/**
 * Prints one line per service, then throws the first failure. Throws a `CliError` of kind `credentials` if
 * no service has an address.
 */
export async function checkProfile(context: Context): Promise<void> {
  const settings = await readSettings(context)
  const { values } = settings
  if (values.baseUrl === undefined && values.agentsUrl === undefined) {
    const advice = `'parley config init${formatProfileFlag(settings)}' asks for an address, or try '--profile demo'`
    const what = 'neither the gateway nor the session service has an address'
    throw new CliError('credentials', `${what}: ${advice}`)
  }
  // `config init` may have waited for the user before this check, so the deadline is set again.
  context.deadline.moveTo(computeDeadlineMs(context.host.timers.now(), settings))
  const timeout = Math.min(values.timeout || Infinity, maxTimeoutSeconds)
  const createCaller = () => createServiceCaller(context, { ...settings, values: { ...values, timeout } })
  const wrap = await createLineWrapper(context.host.stdout)
  const failures: CliError[] = []
  const check = async (name: string, setting: 'baseUrl' | 'agentsUrl', work: () => Promise<string>) => {
    let result = `not tried: ${setting} is not set`
    try {
      if (values[setting] !== undefined) result = await work()
    } catch (failure) {
      if (!(failure instanceof CliError)) throw failure
      result = `failed: ${describe(failure, settings)}`
      const printedDetails = { serviceMessage: undefined, problems: undefined, consequence: undefined }
      failures.push(failure.with(printedDetails, `${name}: ${failure.message}`))
    }
    // stdout may be the log of a CI runner, which would execute commands in remote text.
    const clean = disableInlineCiCommands(toOneLine(context.secrets.redact(result), 2000))
    await context.output.write(`${wrap(`${name}: ${clean}`)}\n`)
  }
  await check('gateway', 'baseUrl', async () => {
    const status = await checkToken(settings, createCaller())
    const chat = `parley chat${formatProfileFlag(settings)} 'Say hello'`
    return `reachable: the gateway did not refuse the token (status ${status}); to ask the model: ${chat}`
  })
  await check('session service', 'agentsUrl', async () => {
    try {
      await checkKey(settings, createCaller())
      return 'ok: the key was accepted'
    } catch (error) {
      return describeMissingList(error, settings)
    }
  })
  const [first] = failures
  const areAllTransient = failures.every(({ details }) => details.retry === 'later')
  if (first) throw first.with({ retry: areAllTransient ? 'later' : 'never' })
}

/**
 * Requests the model by GET, which costs nothing. Throws a `CliError` if the gateway refuses the token, even
 * if the refusal has status 200. Also throws after a redirect, a web page or a 5xx, because another server
 * may have answered without a check of the token. Accepts any other 4xx, because a gateway may not have this
 * path.
 */
async function checkToken({ values }: ResolvedSettings, caller: ServiceCaller): Promise<number> {
  const params = { family: values.family, model: chooseChatModel(undefined, values) }
  try {
    return await caller.call(endpoints.readModel, { params }, async ({ status, body }) => {
      const start = new TextDecoder().decode(await readBody(body, maxReadBytes))
      const value = tryParseJson(start)
      if (isErrorEnvelope(value)) throw createErrorBodyFailure(value)
      if (isMarkup(start)) throw createUnexpectedBodyFailure(start, 'the gateway answered with a web page')
      return status
    })
  } catch (error) {
    const failure = toFailure(error)
    const { kind, message, details } = failure
    const { status = 0 } = details
    const isRedirect = status >= 300 && status < 400
    const isRefusal = (kind === 'refused' && !isRedirect) || (kind === 'rate-limited' && status !== 503)
    if (isRefusal && !isMarkup(details.body)) return status
    if (status === 0 || kind === 'credentials' || kind === 'payment') throw error
    throw failure.with({}, `${message}, which does not show whether the token is accepted`)
  }
}

async function checkKey({ values }: ResolvedSettings, caller: ServiceCaller): Promise<void> {
  const headers = createAgentHeaders(values, values.betas)
  await caller.call(endpoints.listSessions, { params: {}, headers, query: 'limit=1' }, async ({ body }) =>
    readListPage(await readBody(body), 'the list'),
  )
}

/**
 * Returns the output line for a 404 or 405, because the session service may lack a list of sessions, or the
 * address may be wrong. Throws any other failure. Also throws for a web page, because it comes from a web
 * server and not from the session service.
 */
function describeMissingList(error: unknown, settings: ResolvedSettings): string {
  const { status, body } = error instanceof CliError ? error.details : {}
  if ((status !== 404 && status !== 405) || isMarkup(body)) throw error
  const advice = "'parley events list -s ID --limit 1' tests it"
  return `reachable, but a ${status} does not show whether the key is accepted; ${advice}: ${describe(error as CliError, settings)}`
}

const maxReadBytes = 64 * 1024

function describe({ kind, message, details }: CliError, settings: ResolvedSettings): string {
  const { serviceMessage, problems = [], consequence } = details
  const words = [message, ...problems.slice(0, 3), ...(serviceMessage ? [serviceMessage] : [])].join(': ')
  if (details.status !== undefined && consequence !== undefined) return `${words}; ${consequence}`
  const hint = `'parley config list${formatProfileFlag(settings)} --effective' shows the address and other settings in use`
  return kind === 'not-sent' || kind === 'refused' ? `${words}; ${hint}` : words
}
