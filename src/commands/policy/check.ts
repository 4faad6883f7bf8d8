import type { Command } from 'commander'
import { type Companions, FileArgument } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { checkPolicy, type PolicyCheckOptions } from '../../sessions/checking/policy-check.ts'
import { declareSessionFlags } from '../../sessions/session.ts'

export function declare(command: Command): void {
  command
    .addArgument(new FileArgument('<file>', 'the policy'))
    .addArgument(new FileArgument('[events]', 'a recorded session, as events, or - for stdin'))
  declareSessionFlags(command, 'in place of EVENTS: a session, which is read')
  command.option('--fail-on-deny', 'exit 14 if a tool use would be denied or asked about')
}

export const notes = [
  "It checks the file and its examples. For each tool use in EVENTS it prints what the policy would do and by which rule; if an allow rule names the tool and does not match, it also prints why. EVENTS is what 'parley events list --raw' or 'follow --raw' printed, or a page of the service's list.",
  "--raw prints a line of JSON for each. stderr names the rules that matched nothing. 'parley help policy' describes the rules.",
]

const asking = { needs: ['--session'] }

export const companions: Companions = {
  '--dry-run': asking,
  '--curl': asking,
  '--header': asking,
  '--beta': asking,
  '--no-beta': asking,
}

export const examples = [
  'parley policy check rules.json',
  'parley policy check rules.json events.ndjson',
  'parley policy check rules.json -s sesn_1',
  'parley events list -s sesn_1 --raw | parley policy check rules.json -',
]

export const run = (context: Context, options: PolicyCheckOptions, words: string[]): Promise<void> =>
  checkPolicy(context, options, words)
