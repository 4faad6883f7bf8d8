import type { Context } from './context.ts'
import { asFailure, CliError } from './errors.ts'
import { chooseModel } from './gateway/chat/chat.ts'
import { type Caller, createCaller } from './http/call.ts'
import { createAgentHeaders } from './http/request.ts'
import { oneLine } from './io/escape.ts'
import { askYesNo, type Prompter } from './io/question.ts'
import { createLineWrapper } from './io/wrapping.ts'
import { createSessionRequestParts } from './sessions/session.ts'
import {
  computeDeadline,
  formatProfileFlag,
  type ResolvedSettings,
  readSettings,
} from './settings/resolve.ts'
import { decodeBodyText } from './wire/charset.ts'
import { endpoints } from './wire/endpoints.ts'
import { readBody } from './wire/exchange.ts'
import { isObject } from './wire/json/parse.ts'
import { readPage } from './wire/page.ts'
import { createResponseError } from './wire/problem/problem.ts'

/** Maximum silence of a service, in seconds. */
const maxSilenceSeconds = 30

/**
 * Tries both services of the profile without cost and prints one line for each. Throws the first failure, or a
 * `CliError` of kind `credentials` if no address is set.
 */
export async function checkProfile(context: Context, session?: string): Promise<void> {
  const settings = await readSettings(context)
  const { values, origins } = settings
  if (values.baseUrl === undefined && values.agentsUrl === undefined) {
    const ways = `'parley config init${formatProfileFlag(settings)}' asks for an address, or try '--profile demo'`
    const what = 'neither the gateway nor the session service has an address'
    throw new CliError('credentials', `${what}: ${ways}`)
  }
  // The time that a person took for the answers of `config init` must not reduce the time for the check.
  context.deadline.moveTo(computeDeadline(context.host.timers.now(), settings))
  // A `--timeout` flag is used as given. Any other timeout is limited, because it is meant for long answers.
  const isOwn = origins.timeout?.source === 'flag'
  const timeout = isOwn ? values.timeout : Math.min(values.timeout || Infinity, maxSilenceSeconds)
  const caller = createCaller(context, { ...settings, values: { ...values, timeout } })
  const wrap = await createLineWrapper(context.host.stdout)
  let first: CliError | undefined
  const check = async (name: string, setting: 'baseUrl' | 'agentsUrl', work: () => Promise<string>) => {
    let result = `not tried: ${setting} is not set`
    try {
      if (values[setting] !== undefined) result = await work()
    } catch (failure) {
      if (!(failure instanceof CliError)) throw failure
      result = `failed: ${describe(failure, settings)}`
      const { status, attempts, sent, body } = failure.details
      // On a terminal, the line of the result is next to the failure.
      const message = context.output.isTerminal
        ? `the ${name} failed the check`
        : `${name}: ${failure.message}`
      first ??= new CliError(failure.kind, message, { status, attempts, sent, body })
    }
    const clean = oneLine(context.secrets.redact(result), 2000)
    await context.output.write(`${wrap(`${name}: ${clean}`)}\n`)
  }
  await check('gateway', 'baseUrl', async () => {
    const status = await tryModel(settings, caller)
    const chat = `parley chat${formatProfileFlag(settings)} 'Say hello'`
    return `reachable: the token was not refused (${status}); to ask the model: ${chat}`
  })
  await check('session service', 'agentsUrl', async () => {
    const named = session || context.host.env.PARLEY_SESSION
    try {
      await tryList(context, settings, caller, named)
      return 'ok: the key was accepted'
    } catch (error) {
      return describeRefusal(error, named)
    }
  })
  if (first) throw first
}

/**
 * Requests the model's path, which costs nothing, and returns the status. Throws a `CliError` if the gateway
 * refuses the token, or if the answer does not prove that the gateway checked the token: redirects, web pages and 5xx
 * often come from a server in front of the gateway. Any other 4xx counts as an accepted token, because a
 * gateway may not implement this path.
 */
async function tryModel({ values }: ResolvedSettings, caller: Caller): Promise<number> {
  const params = { family: values.family, model: chooseModel(undefined, values) }
  try {
    return await caller.call(endpoints.readModel, { params }, async ({ status, headers }) => {
      if (/^text\/html\b/i.test(headers['content-type'] ?? ''))
        throw createResponseError('the gateway answered with a web page')
      return status
    })
  } catch (error) {
    const failure = asFailure(error)
    const { kind, message, details } = failure
    const { status = 0 } = details
    if ((kind === 'refused' && status >= 400) || kind === 'rate-limited') return status
    if (status === 0 || kind === 'credentials' || kind === 'payment') throw error
    throw failure.with({}, `${message}, which does not show whether the token is accepted`)
  }
}

/**
 * Lists one event of the session, or one session if `session` is `undefined`. Throws a `CliError`, also if
 * the answer is not a list.
 */
async function tryList(
  context: Context,
  settings: ResolvedSettings,
  caller: Caller,
  session: string | undefined,
): Promise<void> {
  const { values } = settings
  const endpoint = session ? endpoints.listEvents : endpoints.listSessions
  const parts = session
    ? // The service checks the betas of this request, so parley does not check them.
      createSessionRequestParts(context, settings, { session, validate: false })
    : { params: {}, headers: createAgentHeaders(values, values.betas) }
  await caller.call(endpoint, { ...parts, query: 'limit=1' }, async ({ body, headers }) =>
    readPage(decodeBodyText(await readBody(body), headers['content-type']), 'the list'),
  )
}

/**
 * Returns the result of the check for a failure that does not mean a refused key. Throws any other failure.
 */
function describeRefusal(error: unknown, session: string | undefined): string {
  const { status, body } = error instanceof CliError ? error.details : {}
  // A web server without this service answers an unknown path with a page, not with JSON.
  if (session && status === 404 && isObject(body)) return 'ok: the key was accepted, no such session'
  if (session || (status !== 404 && status !== 405)) throw error
  return `not tried: the service does not list sessions (${status}): -s or PARLEY_SESSION names one`
}

/** Describes a failure and how to fix it. */
function describe({ kind, message, details }: CliError, settings: ResolvedSettings): string {
  const { serviceMessage, problems = [], status, consequence } = details
  const words = [message, ...problems.slice(0, 3), ...(serviceMessage ? [serviceMessage] : [])].join(': ')
  const isRefused = status !== undefined && (kind === 'credentials' || kind === 'refused')
  if (isRefused && consequence !== undefined) return `${words}; ${consequence}`
  const way = `'parley config list${formatProfileFlag(settings)} --effective' shows the address and names that were used`
  return kind === 'not-sent' || kind === 'refused' ? `${words}; ${way}` : words
}

/** Offers to check the profile. */
export async function offerCheck(context: Context, questioner: Prompter): Promise<void> {
  if (await askYesNo(questioner, 'Check it now? [Y/n]', true)) await checkProfile(context)
}
