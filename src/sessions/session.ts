import { Option } from 'commander'
import { appendFlagValue } from '../argv/flags.ts'
import type { Context } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import { CliError, usageError } from '../errors.ts'
import { createServiceCaller, type ServiceCaller } from '../http/call.ts'
import { createAgentHeaders } from '../http/request.ts'
import { formatProfileFlag, type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import { betaPattern, describeUndocumentedBeta } from '../wire/sessions/betas.ts'
import { formatSessionCommand } from './session-command.ts'

export interface SessionOptions {
  session?: string
  beta?: string[] | false
  validate?: boolean
}

export const createSessionFlags = (noValidateHelp?: string): Option[] => [
  new Option('-s, --session <id>', 'the session (variable PARLEY_SESSION)'),
  ...createBetaFlags(noValidateHelp),
]

export const createBetaFlags = (noValidateHelp = 'accept undocumented betas'): Option[] => [
  new Option('--beta <id>', 'add a beta of the service, repeatable').argParser(appendFlagValue),
  new Option('--no-beta', 'send no betas'),
  new Option('--no-validate', noValidateHelp),
]

export interface SessionClient {
  context: Context
  caller: ServiceCaller
  parts: {
    params: { session: string }
    headers: Record<string, string>
    /** Command with which the user can check whether sent events arrived: it lists the session's events. */
    inspectCommand: string
    deadline: Deadline
    requireLock?: () => void
  }
}

/** `fix`: how a user names the session, for the failure without a session. */
export async function createSessionClient(context: Context, options: SessionOptions, fix?: string) {
  const settings = await readSettings(context)
  const parts = createSessionRequestDefaults(context, settings, options, fix)
  return { context, settings, parts, caller: createServiceCaller(context, settings) }
}

/** Creates a client for requests that are not about one session. */
export async function createAgentClient(context: Context, options: SessionOptions) {
  const settings = await readSettings(context)
  const headers = createAgentHeadersFromFlags(context, settings, options)
  return { caller: createServiceCaller(context, settings), headers }
}

export function createSessionRequestDefaults(
  context: Context,
  settings: ResolvedSettings,
  { session: given = context.host.env.PARLEY_SESSION, ...options }: SessionOptions,
  fix = 'use -s ID',
): SessionClient['parts'] {
  const session = given?.trim()
  if (!session)
    throw usageError(
      `no session was given: ${fix} or set PARLEY_SESSION; 'parley sessions list${formatProfileFlag(settings)}' lists the ids`,
    )
  return {
    params: { session },
    headers: createAgentHeadersFromFlags(context, settings, options),
    inspectCommand: formatSessionCommand({ context, parts: { params: { session } } }, 'list'),
    deadline: context.deadline,
  }
}

/**
 * Creates the headers of each request to the session service, including the beta header. Throws a `CliError`
 * for an undocumented beta, unless `--no-validate` is set.
 */
function createAgentHeadersFromFlags(
  context: Context,
  { values, origins }: ResolvedSettings,
  { beta, validate = true }: SessionOptions,
): Record<string, string> {
  const given = beta === undefined || beta === false ? [] : beta
  const fromSettings = beta === false ? [] : values.betas
  const isBetaHeaderGiven = context.flags.header?.some((line) =>
    line.toLowerCase().startsWith(`${values.vendor}-beta:`.toLowerCase()),
  )
  const invalid = given.find((id) => !betaPattern.test(id))
  if (invalid !== undefined)
    throw usageError(`--beta '${invalid}': must be one id without blanks or commas; repeat the flag for more`)
  if (!isBetaHeaderGiven && validate) {
    requireDocumented(given, { source: 'flag', label: '--beta' })
    requireDocumented(fromSettings, origins.betas)
  }
  return createAgentHeaders(values, [...new Set([...fromSettings, ...given])])
}

/**
 * Throws a usage error if PARLEY_SESSION is set and the first word looks like a session id. Without this
 * check, parley would send the word as a message.
 */
export function rejectPositionalSessionId(
  { host }: Context,
  { session }: SessionOptions,
  [word = '']: readonly string[],
  hint = '',
): void {
  const [prefix] = /^[A-Za-z]+_/.exec(host.env.PARLEY_SESSION ?? '') ?? []
  if (session !== undefined || prefix === undefined || !word.startsWith(prefix)) return
  if (/^[\w-]+$/.test(word)) throw usageError(`'${word}' looks like a session id: use -s ${word}${hint}`)
}

/** Checks betas of a flag or the environment. `config set` has already checked the betas of a profile. */
function requireDocumented(betas: readonly string[], origin: ResolvedSettings['origins']['betas']): void {
  if (origin?.source !== 'flag' && origin?.source !== 'environment') return
  const problem = describeUndocumentedBeta(betas)
  if (problem !== undefined)
    throw new CliError(origin.source === 'flag' ? 'usage' : 'credentials', `${origin.label}: ${problem}`)
}
