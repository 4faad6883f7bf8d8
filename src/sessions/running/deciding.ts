import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { type Asker, canAsk } from '../confirming/verdicts.ts'
import type { Call } from './call.ts'
import { judge, type Rules, type Verdict, waitsForResult } from './verdict.ts'

/** Decides about tool uses by rules, and asks a person where these say so and somebody is there. */
export async function decideAll(
  { context, asker }: { context: Context; asker: Asker },
  rules: Rules,
  calls: readonly Call[],
): Promise<Verdict[]> {
  const verdicts = calls.map((call) => judge(call, rules))
  // Whoever allows what nobody here can carry out has answered nothing.
  const isForPerson = ({ call, decision }: Verdict) =>
    decision === 'ask' &&
    !call.isContradicted &&
    (!waitsForResult(call, rules.tools) || rules.tools.has(call.name))
  const questions = canAsk(context) ? verdicts.filter(isForPerson) : []
  if (questions.length === 0) return verdicts
  const said = await ask(
    context,
    asker,
    questions.map(({ call: { id, name, text } }) => ({ id, name, text })),
  )
  return verdicts.map((verdict) => {
    const isAllowed = said.get(verdict.call.id)
    if (isAllowed === undefined) return verdict
    return { call: verdict.call, decision: isAllowed ? 'allow' : 'deny', by: 'person' }
  })
}

async function ask(
  { note }: Context,
  asker: Asker,
  uses: Parameters<Asker['ask']>[0],
): Promise<Map<string, boolean>> {
  try {
    const verdicts = await asker.ask(uses)
    return new Map(verdicts.map(({ id, isAllowed }) => [id, isAllowed]))
  } catch (error) {
    // The person left, or cannot be shown all of it: then it stays open.
    if (!(error instanceof CliError) || error.kind !== 'usage') throw error
    note(error.message)
    return new Map()
  }
}
