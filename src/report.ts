import { lstatSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { asFileFailure, CliError, type Kind, outcomes, usage } from './errors.ts'
import type { Facts } from './facts.ts'
import { escapeJson, oneLine } from './io/escape.ts'
import { renameFile } from './io/rename-file.ts'
import type { Secrets } from './secrets.ts'

/** How a run ended. */
export interface End {
  exit: number
  /** Ended by a signal. */
  isSignal?: boolean
  failure?: CliError
}

export interface ReportSource {
  /** A relative name begins there. */
  readonly cwd: string
  facts: Facts
  secrets: Secrets
  /** When the run began: milliseconds since the epoch. */
  start: number
}

/**
 * Prepares to write the report of a run, and removes an earlier one. What it returns writes it whole, synchronously,
 * so that a signal can call it. Both throw a `CliError` of kind `file` where it cannot be written.
 */
export function openReport(name: string, { cwd, facts, secrets, start }: ReportSource): (end: End) => void {
  if (name === '' || name === '-') throw usage('--report needs the name of a file')
  const target = resolve(cwd, name)
  const asFailure = (error: unknown) => asFileFailure(error, `--report ${name}`)
  try {
    requireReplaceable(target, name)
    // Shows that a file can be made there.
    replace(target, '')
    rmSync(target)
  } catch (error) {
    throw asFailure(error).with({ consequence: 'nothing was sent' })
  }
  return (end) => {
    try {
      requireReplaceable(target, name)
      const text = JSON.stringify(describeRun(facts, end, (Date.now() - start) / 1000))
      replace(target, `${escapeJson(secrets.redact(text))}\n`)
    } catch (error) {
      throw asFailure(error).with({ consequence: 'the report was not written', sent: facts.sent })
    }
  }
}

function requireReplaceable(target: string, name: string): void {
  const found = lstatSync(target, { throwIfNoEntry: false })
  if (found && !found.isFile()) throw new CliError('file', `--report ${name}: it is not a regular file`)
}

function replace(target: string, text: string): void {
  const temporary = join(dirname(target), `.parley-${crypto.randomUUID()}.part`)
  try {
    writeFileSync(temporary, text, { flag: 'wx' })
    renameFile(temporary, target)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

const counted = [
  'inputTokens',
  'outputTokens',
  'cacheReadInputTokens',
  'cacheCreationInputTokens',
  'reasoningTokens',
  'totalTokens',
]

/** What is not known is null. */
function describeRun(facts: Facts, { exit, isSignal, failure }: End, seconds: number): object {
  const { command, model, stopReason, session, usage, attempts, files, counts } = facts
  const requestId = failure?.details.requestId ?? facts.requestId
  return {
    command: command ?? null,
    exit,
    kind: isSignal ? 'signal' : (failure?.kind ?? kindOf(exit)),
    sent: failure?.details.sent ?? facts.sent,
    model: shown(model),
    stopReason: shown(stopReason),
    usage: Object.fromEntries(counted.map((name) => [name, usage.get(name) ?? null])),
    seconds,
    attempts,
    requestId: shown(requestId),
    session: shown(session),
    files: files ?? null,
    counts,
  }
}

const shown = (text: string | undefined) => (text === undefined ? null : oneLine(text, 200))

function kindOf(exit: number): Kind | null {
  const kinds = Object.keys(outcomes) as Kind[]
  return kinds.find((kind) => outcomes[kind].exit === exit) ?? null
}
