import { Option } from 'commander'
import { addValue } from '../argv/flags.ts'
import { didYouMean } from '../argv/spelling.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { type Caller, createCaller } from '../http/call.ts'
import { agentHeaders } from '../http/request.ts'
import { parseValue, profileFlag, type ResolvedSettings, readSettings } from '../settings/resolve.ts'
import { betas as knownBetas } from '../wire/sessions/betas.ts'
import { sessionCommand } from './session-command.ts'

export interface SessionOptions {
  session?: string
  /** `--beta`; false with `--no-beta`. */
  beta?: string[] | false
}

export const sessionFlags = (about = 'the session (environment PARLEY_SESSION)'): Option[] => [
  new Option('-s, --session <id>', about),
  new Option('--beta <id>', 'one more beta of the service, repeatable').argParser(addValue),
  new Option('--no-beta', 'send no betas'),
]

/** What every request to a session has: its path's values, and the service's own headers. */
export interface SessionParts {
  params: { session: string }
  headers: Record<string, string>
  /** The command that shows what became of what was sent. */
  look: string
}

/** A session, and the way to it. Each part of a run adds what it needs besides. */
export interface SessionAccess {
  context: Context
  caller: Caller
  parts: SessionParts
}

/** Throws a usage error if no session is named. */
export async function accessSession(context: Context, options: SessionOptions) {
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  return { context, settings, parts, caller: createCaller(context, settings) }
}

/** Throws a usage error if no session is named. */
export function sessionParts(
  context: Context,
  settings: ResolvedSettings,
  { session = context.host.env.PARLEY_SESSION, beta }: SessionOptions,
): SessionParts {
  const { values, origins } = settings
  if (!session)
    throw usage(
      `no session: give it by -s ID or PARLEY_SESSION; 'parley api${profileFlag(settings)} agents /v1/sessions' lists them`,
    )
  const isGiven = (name: string) => context.flags.given.some(({ flag }) => flag === name)
  if (isGiven('--beta') && isGiven('--no-beta')) throw usage('--beta and --no-beta exclude each other')
  const { vendor } = values
  const given = beta === undefined || beta === false ? [] : beta
  const own = beta === false ? [] : values.betas
  const isReplaced = context.flags.header?.some((line) =>
    line.toLowerCase().startsWith(`${vendor}-beta:`.toLowerCase()),
  )
  if (!isReplaced) {
    for (const id of given) requireBeta(id, vendor)
    if (origins.betas) parseValue({ setting: 'betas', value: own, origin: origins.betas })
  }
  const all = [...new Set([...own, ...given])]
  return {
    params: { session },
    headers: agentHeaders(values, all),
    look: sessionCommand(context, 'list', session),
  }
}

/**
 * Throws a usage error if PARLEY_SESSION names the session, and the first word looks like another one: it would go as
 * something else. `asText` says how it can go as a text all the same.
 */
export function refuseSessionWord(
  { host }: Context,
  { session }: SessionOptions,
  [word = '']: readonly string[],
  asText = '',
): void {
  const [prefix] = /^[A-Za-z]+_/.exec(host.env.PARLEY_SESSION ?? '') ?? []
  if (session !== undefined || prefix === undefined || !word.startsWith(prefix)) return
  if (/^[\w-]+$/.test(word)) throw usage(`'${word}' looks like a session: -s ${word} names one${asText}`)
}

function requireBeta(id: string, vendor: string): void {
  if (knownBetas.includes(id)) return
  const way = `-H '${vendor}-beta: ${id}' sends it anyway`
  // People know a beta by its name, and look for its date.
  const latest = knownBetas.findLast((known) => known.replace(/-\d{4}-\d\d-\d\d$/, '') === id)
  const meant = latest ? ` (did you mean ${latest}?)` : didYouMean(id, knownBetas)
  throw usage(`--beta: there is no documented beta '${id}'${meant}; ${way}`)
}
