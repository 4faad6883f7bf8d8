import { Option } from 'commander'
import { appendFlagValue, FileArgument } from '../../argv/flags.ts'
import { checkPolicy } from '../../sessions/checking/policy-check.ts'
import { createBetaFlags } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

const needsSession = { requires: ['--session'] }
const needsEvents = { requires: ['EVENTS', '--session'] }

export default {
  parameters: () => [
    new FileArgument('<file>', 'the policy'),
    new FileArgument('[events]', 'recorded events of a session, or - for stdin'),
    new Option('-s, --session <id>', 'read this session instead of EVENTS'),
    ...createBetaFlags(),
    new Option(
      '--tool <name=command>',
      "a tool and its command, as for 'events run'; the command is not executed; repeatable",
    ).argParser(appendFlagValue),
    new Option('--fail-on-deny', 'exit 14 if the policy denies or asks about a tool use'),
  ],

  notes: [
    "Checks the policy file and the examples in its rules. For each tool use in EVENTS, prints the decision and its rule. If an allow rule names the tool but does not match, also prints why it does not match. EVENTS is the output of 'parley events list --raw' or 'follow --raw', or a page of the service's event list.",
    "--raw prints one JSON line per tool use. 'parley help policy' describes the rules.",
  ],

  printsFailedBody: false,

  flagRules: {
    '--session': { excludes: ['EVENTS'] },
    '--tool': needsEvents,
    '--fail-on-deny': needsEvents,
    '--raw': needsEvents,
    '--dry-run': needsSession,
    '--curl': needsSession,
    '--header': needsSession,
    '--beta': needsSession,
    '--no-beta': needsSession,
    '--no-validate': needsSession,
  },

  examples: [
    'parley policy check rules.json',
    'parley policy check rules.json events.ndjson',
    'parley policy check rules.json -s sesn_1',
    'parley events list -s sesn_1 --raw | parley policy check rules.json -',
  ],

  run: checkPolicy,
} satisfies CommandModule
