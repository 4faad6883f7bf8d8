import type { Context } from './context.ts'
import { CliError } from './errors.ts'
import { buildTrial, longestAnswer, tryChat } from './gateway/check.ts'
import { type Caller, createCaller } from './http/call.ts'
import { refusesSecret } from './http/retry.ts'
import { oneLine } from './io/escape.ts'
import { createQuestioner, InputEnded, type Questioner } from './io/question.ts'
import { createWrapping } from './io/wrapping.ts'
import { tryEvents, trySessions } from './sessions/check.ts'
import { pathDoubt } from './settings/doubts.ts'
import { changeProfile, demoName, withValue } from './settings/profiles.ts'
import { deadlineOf, readSettings } from './settings/read-settings.ts'
import type { ResolvedSettings } from './settings/resolve.ts'
import { addressOf, profileFlag, secretOriginOf } from './settings/service-settings.ts'
import type { Endpoint } from './wire/endpoints.ts'
import { isObject } from './wire/json/parse.ts'

export interface CheckOptions {
  /** Also try what costs: two short questions to the model. If absent, a person at a terminal is asked. */
  ask?: boolean | undefined
  session?: string | undefined
}

interface Trial extends CheckOptions {
  context: Context
  settings: ResolvedSettings
  caller: Caller
}

const services = { gateway: 'gateway', agents: 'session service' } as const

/** How long a service may be silent, in seconds: a model takes its time. */
const patience = { gateway: 30, agents: 10 }

/**
 * Tries both services of the profile and prints one line for each. Returns whether the gateway streamed. Throws the first
 * failure, or a `CliError` of kind `credentials` if no address is set.
 */
export async function checkProfile(asked: Context, { ask, session }: CheckOptions): Promise<boolean> {
  const settings = await readSettings(asked)
  if (settings.values.baseUrl === undefined && settings.values.agentsUrl === undefined)
    throw noAddress(settings)
  const agreed = ask ?? (await offerQuestions(asked, settings))
  // The person's time to answer does not count.
  const context = { ...asked, start: asked.timers.now() }
  context.limit.deadline = deadlineOf(context, settings)
  const wrap = await createWrapping(context.host.stdout)
  let first: CliError | undefined
  let streams = false
  for (const service of ['gateway', 'agents'] as const) {
    const caller = createCaller(context, settings, { timeout: timeoutFor(service, settings) })
    const trial = {
      context,
      settings,
      caller,
      ask: agreed,
      session: session || context.host.env.PARLEY_SESSION,
    }
    let result: string
    try {
      if (settings.values[addressOf(service)] === undefined)
        result = `not tried: ${addressOf(service)} is not set`
      else if (service === 'agents') result = await trySessionService(trial)
      else [result, streams] = await tryGateway(trial)
    } catch (failure) {
      if (!(failure instanceof CliError)) throw failure
      result = `failed: ${describe(failure, service, settings)}`
      first ??= withoutWords(failure, services[service])
    }
    const clean = oneLine(context.secrets.redact(result), 2000)
    await context.output.write(`${wrap(`${services[service]}: ${clean}`)}\n`)
  }
  if (first) throw first
  return streams
}

/** `--timeout` is meant for the check; a setting is meant for answers that may take long. */
function timeoutFor(service: Endpoint['service'], { values, origins }: ResolvedSettings): number {
  const { timeout } = values
  return origins.timeout?.source === 'flag' ? timeout : Math.min(timeout || Infinity, patience[service])
}

/** Asks the model twice if that was agreed to. Also returns whether the second answer streamed. */
async function tryGateway({ context, settings, caller, ask }: Trial): Promise<[string, streams: boolean]> {
  const { endpoint, parts } = await buildTrial(settings, { stream: false })
  await caller.prepare(endpoint, parts)
  if (!ask) {
    const way = `'parley config check${profileFlag(settings)} --ask' tries it`
    const doubt = pathDoubt('baseUrl', settings.values.baseUrl ?? '')
    const why = `not tried: it costs up to ${2 * longestAnswer} tokens: ${way}`
    return [doubt === undefined ? why : `${why}; ${doubt}`, false]
  }
  await tryChat(context, settings, { caller, stream: false })
  const type = await tryChat(context, settings, { caller, stream: true })
  const { streamVia, stream } = settings.values
  if (!/^text\/event-stream\b/i.test(type))
    return [`ok: the model answered, and does not stream with streamVia=${streamVia}`, false]
  const way =
    stream || settings.profile === demoName
      ? ''
      : `; 'parley config set${profileFlag(settings)} stream true' has every chat stream`
  return [`ok: the model answered, and streams with streamVia=${streamVia}${way}`, true]
}

/** Reads one event of the session that is named, else one session. */
async function trySessionService({ context, settings, caller, session }: Trial): Promise<string> {
  try {
    if (session) await tryEvents(context, settings, { caller, session })
    else await trySessions(caller, settings)
    return 'ok: the key was accepted'
  } catch (error) {
    const { status, body } = error instanceof CliError ? error.details : {}
    // A web server that knows nothing of keys has a page of its own for what it does not find.
    if (session && status === 404 && isObject(body)) return 'ok: the key was accepted, no such session'
    if (session || (status !== 404 && status !== 405)) throw error
    return `not tried: the service does not list sessions (${status}): -s or PARLEY_SESSION names one`
  }
}

/** The words of a failure, and what mends it. */
function describe(
  { message, details }: CliError,
  service: Endpoint['service'],
  settings: ResolvedSettings,
): string {
  const { serviceMessage, problems = [], status = 0, consequence } = details
  const words = [message, ...problems.slice(0, 3), ...(serviceMessage ? [serviceMessage] : [])].join(': ')
  const setting = addressOf(service)
  const mends = [
    refusesSecret(status) ? consequence : undefined,
    pathDoubt(setting, settings.values[setting] ?? ''),
    wayToMend(message, status, { service, settings }),
  ]
  return [words, ...mends.filter((mend) => mend !== undefined)].join('; ')
}

/** Which setting to look at after a failure. */
function wayToMend(
  message: string,
  status: number,
  { service, settings }: { service: Endpoint['service']; settings: ResolvedSettings },
): string | undefined {
  const flag = profileFlag(settings)
  if (status === 400 || status === 404 || status === 405)
    return `'parley config list${flag} --effective' shows the address and names that were used`
  if (message.includes('--cacert')) return `'parley config set${flag} cacert FILE' keeps it`
  const setting = addressOf(service)
  if (!message.startsWith(new URL(settings.values[setting] ?? '').hostname)) return undefined
  const origin = settings.origins[setting]
  return origin?.source === 'profile'
    ? `'parley config set${flag} ${setting} ADDRESS' changes the address`
    : `the address is from ${origin?.name}`
}

/** The line on stdout has the service's message and what mends it already. */
const withoutWords = ({ kind, message, details }: CliError, service: string): CliError => {
  const { status, attempts, sent, body } = details
  return new CliError(kind, `${service}: ${message}`, { status, attempts, sent, body })
}

/** Asks a person at a terminal whether to try what costs. */
async function offerQuestions(
  { host, flags, input, cleanups, wrap }: Context,
  settings: ResolvedSettings,
): Promise<boolean> {
  const isAsked = input.stdinKind === 'terminal' && host.stderr.isTerminal && !flags.quiet
  if (!isAsked || !canAsk(settings)) return false
  const questioner = createQuestioner({ ...host, cleanups })
  try {
    return await agrees(questioner, wrap(costly))
  } finally {
    questioner.close()
  }
}

/** Whether there are a gateway to ask and a token. */
const canAsk = (settings: ResolvedSettings): boolean =>
  settings.values.baseUrl !== undefined && secretOriginOf(settings, 'gateway') !== undefined

const costly = `Ask the model, too? That is two short questions, up to ${2 * longestAnswer} tokens. [y/N]`

/** Asks until the answer is yes, no, or Enter for the default. */
async function agrees(questioner: Questioner, question: string, byDefault = false): Promise<boolean> {
  for (;;) {
    const said = await questioner.ask(`${question} `)
    if (said === '') return byDefault
    if (/^y(es)?$/i.test(said)) return true
    if (/^no?$/i.test(said)) return false
  }
}

/** Offers to check the profile, and if the gateway streams, to have every chat stream. The end of the input is a no. */
export async function offerCheck(context: Context, questioner: Questioner): Promise<void> {
  const settings = await readSettings(context)
  const { values } = settings
  const agreed = (question: string, byDefault: boolean) =>
    agrees(questioner, context.wrap(question), byDefault).catch((error: unknown) => {
      if (error instanceof InputEnded) return false
      throw error
    })
  if (!(await agreed('Check it now? [Y/n]', true))) return
  const ask = canAsk(settings) && (await agreed(costly, false))
  const streams = await checkProfile(context, { ask })
  if (!streams || values.stream) return
  if (await agreed('Print every chat as it comes? [Y/n]', true))
    await changeProfile(context, (current) => withValue(current, 'stream', true), settings.profile)
}

function noAddress(settings: ResolvedSettings): CliError {
  const ways = `'parley config init${profileFlag(settings)}' asks for it, or try '--profile demo'`
  return new CliError('credentials', `no address is set, of the gateway or of the session service: ${ways}`)
}
