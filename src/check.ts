import { isIP } from 'node:net'
import type { Context } from './context.ts'
import { CliError } from './errors.ts'
import { buildTrial, longestAnswer, tryChat } from './gateway/check.ts'
import { type Caller, createCaller } from './http/call.ts'
import type { Stage } from './http/connect.ts'
import { refusesSecret } from './http/retry.ts'
import { oneLine } from './io/escape.ts'
import { createQuestioner, type Questioner } from './io/question.ts'
import { toTsv } from './io/tsv.ts'
import { createWrapping } from './io/wrapping.ts'
import { tryList } from './sessions/check.ts'
import { sessionParts } from './sessions/session.ts'
import { pathDoubt } from './settings/doubts.ts'
import { deadlineOf, readSettings } from './settings/read-settings.ts'
import type { ResolvedSettings } from './settings/resolve.ts'
import { addressOf, profileFlag, secretOriginOf } from './settings/service-settings.ts'
import { type Endpoint, endpoints } from './wire/endpoints.ts'
import { isObject } from './wire/json/parse.ts'

export interface CheckOptions {
  /** Also what costs: two short questions to the model. If it is not said, a person at a terminal is asked. */
  ask?: boolean | undefined
  session?: string | undefined
}

/** What came of one step. */
type StepResult =
  | { is: 'ok'; about?: string }
  | { is: 'not tried'; about: string }
  | { is: 'failed'; about: string; mend: string | undefined; failure: CliError }

type CheckStep = 'address' | 'name' | 'connection' | 'TLS' | 'credential' | 'stream'

/** What a check is made with. */
interface Means {
  ask: boolean
  session: string | undefined
  context: Context
  settings: ResolvedSettings
  caller: Caller
}

const services = { gateway: 'gateway', agents: 'session service' } as const

/**
 * Tries both services of the profile as far as that costs nothing, and prints a line for each step. Throws the first
 * failure, or a `CliError` of kind `credentials` if no address is set.
 */
export async function checkProfile(asked: Context, { ask, session }: CheckOptions): Promise<void> {
  const settings = await readSettings(asked)
  if (settings.values.baseUrl === undefined && settings.values.agentsUrl === undefined)
    throw noAddress(settings)
  const asks = ask ?? (await offerQuestions(asked, settings))
  // A person's answers take their time.
  const context = { ...asked, start: asked.timers.now() }
  context.limit.deadline = deadlineOf(context, settings)
  const trying = {
    ask: asks,
    session: session || context.host.env.PARLEY_SESSION || undefined,
    context,
    settings,
  }
  const print = await createPrinter(context)
  let first: CliError | undefined
  for (const service of ['gateway', 'agents'] as const) {
    const means = {
      ...trying,
      caller: createCaller(context, settings, { timeout: patienceFor(service, settings) }),
    }
    const trial = service === 'gateway' ? tryGateway(means) : trySessionService(means)
    for await (const [step, result] of tryService(means, service, trial)) {
      await print(services[service], step, result)
      if (result.is === 'failed') first ??= asFailure(result.failure, `${services[service]}, ${step}`)
    }
  }
  if (first) throw first
}

/** How long a service may be silent. A model takes its time. Seconds. */
const patience = { gateway: 30, agents: 10 }

/** Only a flag is for the check: the settings are for answers that may take long. */
function patienceFor(service: Endpoint['service'], { values, origins }: ResolvedSettings): number {
  const { timeout } = values
  return origins.timeout?.source === 'flag' ? timeout : Math.min(timeout || Infinity, patience[service])
}

/** Whether a person at a terminal wants what costs. */
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
    await questioner.close()
  }
}

/** Whether there is a gateway to ask, and a token. */
const canAsk = (settings: ResolvedSettings): boolean =>
  settings.values.baseUrl !== undefined && secretOriginOf(settings, 'gateway') !== undefined

const costly = `Try the token, too? It asks the model twice, for up to ${2 * longestAnswer} tokens. [y/N]`

/** Asks until the answer is yes, no, or Enter for what it is by default. */
async function agrees(questioner: Questioner, question: string, byDefault = false): Promise<boolean> {
  for (;;) {
    const said = await questioner.ask(`${question} `)
    if (said === '') return byDefault
    if (/^y(es)?$/i.test(said)) return true
    if (/^no?$/i.test(said)) return false
  }
}

/** Asks whether to check the profile now; the end of the input is a no. Returns how, if it is wanted. */
export async function offerCheck(
  context: Context,
  questioner: Questioner,
): Promise<CheckOptions | undefined> {
  const settings = await readSettings(context)
  try {
    if (!(await agrees(questioner, 'Check it now? [Y/n]', true))) return undefined
    return { ask: canAsk(settings) && (await agrees(questioner, context.wrap(costly))) }
  } catch (error) {
    if (error instanceof CliError) return undefined
    throw error
  }
}

function noAddress(settings: ResolvedSettings): CliError {
  const ways = `'parley config init${profileFlag(settings)}' asks for it, or try '--profile demo'`
  return new CliError('credentials', `no address is set, of the gateway or of the session service: ${ways}`)
}

/** Its line has said what the service said, and what mends it. */
const asFailure = ({ kind, message, details }: CliError, where: string): CliError => {
  const { status, attempts, sent, body } = details
  return new CliError(kind, `${where}: ${message}`, { status, attempts, sent, body })
}

/** The steps up to a connection, then those of the credential. */
async function* tryService(
  { settings, caller }: Means,
  service: Endpoint['service'],
  credential: AsyncIterable<[CheckStep, StepResult]>,
): AsyncGenerator<[CheckStep, StepResult]> {
  const setting = addressOf(service)
  const address = settings.values[setting]
  if (address === undefined) {
    yield ['address', notTried(`${setting} is not set`)]
    return
  }
  const doubt = pathDoubt(setting, address)
  const from = `${address}, from ${settings.origins[setting]?.name}`
  yield ['address', ok(doubt === undefined ? from : `${from}; ${doubt}`)]
  let isConnected = true
  for await (const [stage, result] of tryConnection(settings, caller, new URL(address))) {
    if (result.is === 'failed') isConnected = false
    yield [
      stage,
      result.is === 'failed' ? { ...result, mend: mendWay(result.about, settings, service) } : result,
    ]
  }
  if (isConnected) yield* credential
  else yield ['credential', notTried('there is no connection')]
}

const stages = ['name', 'connection', 'TLS'] as const

/** How far a connection gets. */
async function* tryConnection(
  settings: ResolvedSettings,
  caller: Caller,
  url: URL,
): AsyncGenerator<[Stage, StepResult]> {
  const reached = new Map<Stage, string | undefined>()
  const result = await attempt(settings, async () => {
    const isTried = await caller.tryConnection(url, (stage, proxy) =>
      reached.set(stage, proxy && `through the proxy ${proxy.url.host}, from ${proxy.variable}`),
    )
    return isTried ? ok() : notTried('the built-in emulator answers, without a network')
  })
  let isOpen = result.is !== 'not tried'
  for (const stage of stages) {
    if (isOpen && stage === 'TLS' && url.protocol === 'http:') yield [stage, notTried('the address is http')]
    else if (reached.has(stage)) yield [stage, describeStage(stage, url, reached.get(stage))]
    else if (isOpen) {
      yield [stage, result]
      isOpen = false
    } else yield [stage, result.is === 'failed' ? notTried('there is no connection') : result]
  }
}

function describeStage(stage: Stage, url: URL, way: string | undefined): StepResult {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return stage === 'name' && way === undefined && isIP(host) ? notTried(`${host} is an address`) : ok(way)
}

/** Without a yes to its cost, the model is not asked. */
async function* tryGateway({
  context,
  settings,
  caller,
  ask,
}: Means): AsyncGenerator<[CheckStep, StepResult]> {
  const first = await attempt(settings, async () => {
    const { endpoint, parts } = await buildTrial(settings, { stream: false })
    await caller.prepare(endpoint, parts)
    if (!ask)
      return notTried(
        `it costs up to ${2 * longestAnswer} tokens: 'parley config check${profileFlag(settings)} --ask' tries it`,
      )
    await tryChat(context, settings, { caller, stream: false })
    return ok('the model answered')
  })
  yield ['credential', first]
  if (!ask) return
  if (first.is === 'failed') yield ['stream', notTried('the first question failed')]
  else yield ['stream', await attempt(settings, () => tryStream({ context, settings, caller }))]
}

async function tryStream(means: Pick<Means, 'context' | 'settings' | 'caller'>): Promise<StepResult> {
  const { context, settings, caller } = means
  const type = await tryChat(context, settings, { caller, stream: true })
  const { streamVia } = settings.values
  return /^text\/event-stream\b/i.test(type)
    ? ok(`asked for by streamVia=${streamVia}`)
    : ok(`the answer came whole: the service may want another streamVia than ${streamVia}`)
}

/** The key is tried by reading an event. */
async function* trySessionService(means: Means): AsyncGenerator<[CheckStep, StepResult]> {
  const { context, settings, caller, session } = means
  yield [
    'credential',
    await attempt(settings, async () => {
      const parts = sessionParts(context, settings, { session: session ?? 'none' })
      await caller.prepare(endpoints.listEvents, parts)
      if (session === undefined) return notTried('-s or PARLEY_SESSION has to name a session')
      try {
        await tryList(caller, parts)
        return ok('the key was accepted')
      } catch (error) {
        // A web server knows nothing of keys, and has a page of its own for what it does not find.
        const { status, body } = error instanceof CliError ? error.details : {}
        if (status !== 404 || !isObject(body)) throw error
        return ok('the key was accepted, no such session')
      }
    }),
  ]
}

const ok = (about?: string): StepResult => ({ is: 'ok', ...(about === undefined ? {} : { about }) })

const notTried = (about: string): StepResult => ({ is: 'not tried', about })

async function attempt(settings: ResolvedSettings, work: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await work()
  } catch (failure) {
    if (!(failure instanceof CliError)) throw failure
    const { message, details } = failure
    const { serviceMessage, problems = [], status = 0, consequence } = details
    const about = [message, ...problems.slice(0, 3), ...(serviceMessage ? [serviceMessage] : [])].join(': ')
    return {
      is: 'failed',
      about,
      mend: refusesSecret(status) ? consequence : hintAt(status, settings),
      failure,
    }
  }
}

const hintAt = (status: number, settings: ResolvedSettings): string | undefined =>
  status === 400 || status === 404 || status === 405
    ? `'parley config list${profileFlag(settings)} --effective' shows the address and names that were used`
    : undefined

/** What changes an address that cannot be reached, or whose certificate is not trusted. */
function mendWay(
  about: string,
  settings: ResolvedSettings,
  service: Endpoint['service'],
): string | undefined {
  // Such a message names the variable that the proxy comes from.
  if (about.startsWith('the proxy ')) return undefined
  if (about.includes('--cacert')) return `'parley config set${profileFlag(settings)} cacert FILE' keeps it`
  const setting = addressOf(service)
  const origin = settings.origins[setting]
  if (origin?.source === 'profile')
    return `'parley config set${profileFlag(settings)} ${setting} ADDRESS' changes the address`
  return origin?.source === 'environment' ? `${origin.name} has the address` : undefined
}

type Print = (service: string, step: CheckStep, result: StepResult) => Promise<void>

/** Prints columns on a terminal, else fields separated by tabs. */
async function createPrinter({ host, output, style, secrets }: Context): Promise<Print> {
  const clean = (text: string) => oneLine(secrets.redact(text), 1000)
  const words = ({ is, about }: StepResult) => `${is}${about === undefined ? '' : `: ${clean(about)}`}`
  if (!output.isTerminal) {
    return (service, step, result) => {
      const mend = result.is === 'failed' && result.mend ? `; ${clean(result.mend)}` : ''
      return output.write(toTsv([service, step, `${words(result)}${mend}`]))
    }
  }
  const widths = [Math.max(...Object.values(services).map(({ length }) => length)), 'connection'.length]
  const start = widths.reduce((sum, width) => sum + width + 2, 0)
  const wrap = await createWrapping(host.stdout, start)
  const paints = { ok: String, 'not tried': style.dim, failed: style.red }
  return async (service, step, result) => {
    const paint = paints[result.is]
    const cells = [service, step].map((cell, column) => cell.padEnd((widths[column] ?? 0) + 2)).join('')
    const lines = [`${cells}${paint(wrap(words(result)))}`]
    if (result.is === 'failed' && result.mend) lines.push(`${' '.repeat(start)}${wrap(clean(result.mend))}`)
    await output.write(`${lines.join('\n')}\n`)
  }
}
