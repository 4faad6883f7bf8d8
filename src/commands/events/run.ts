import { Argument, Option } from 'commander'
import {
  appendFlagValue,
  createFailOnEmptyFlag,
  FileFlag,
  parseAmount,
  parsePositiveCount,
} from '../../argv/flags.ts'
import { type RunOptions, readRunPlan } from '../../sessions/running/plan.ts'
import { runTask } from '../../sessions/running/run.ts'
import { createEventFlags } from '../../sessions/sending/event-flags.ts'
import { createSessionFlags, rejectPositionalSessionId } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[task...]', 'the task; without a task or other events, continue the session'),
    ...createSessionFlags({ noValidateHelp: 'accept any JSON as events, and undocumented betas' }),
    new FileFlag('-i, --input <file>', 'events as JSON, or - for stdin'),
    new Option('--after <id>', 'resume after this event; printed in resume commands'),
    new FileFlag('--policy <file>', 'allow and deny tool uses by these rules'),
    new FileFlag('--audit <file>', 'record decisions; rerun the same command to resume', 'updates'),
    new Option('--tool <name=command>', 'execute a tool with a shell command, repeatable').argParser(
      appendFlagValue,
    ),
    new Option('--tool-timeout <seconds>', 'longest time for a --tool command (default 600)'),
    new Option('--fail-on-tool-error', 'exit 14 if a --tool command failed or timed out'),
    new Option('--max-total-tokens <n>', 'interrupt the session after N tokens of this run').argParser(
      parsePositiveCount,
    ),
    new Option(
      '--max-cost <amount>',
      'interrupt the session when this run reaches this cost at list prices, such as 2.50',
    ).argParser(parseAmount),
    ...createEventFlags({ isInHelp: false }),
    createFailOnEmptyFlag(),
    new Option('--ids', 'print only the ids of waiting tool uses'),
    new Option('--last', "print only the agent's answer"),
    new FileFlag('-o, --output <file>', 'write the whole answer to a file, replacing it', 'writes'),
    new FileFlag('--schema <file>', 'print JSON that matches this JSON Schema, or exit 8'),
  ],

  notes: [
    "The event flags of 'parley events send --help' work here, too.",
    'The answer is the last message of the main thread after the task, once the session is idle (exit 0 or 14). --schema tells the agent the required form, and checks only the answer.',
    'Each run sends its task, so start one run per session at a time (in CI: a concurrency group). On one machine, a second run waits until the first has ended. After a kill, the same command with --audit resumes an unfinished task.',
    "Limits, footer and report count the usage since this command started, even if it resumes a run; the report's sessionUsage and sessionCost count the whole session. A service reports usage after each model request, so a run can exceed its limit before parley interrupts it.",
    "'parley help policy' describes the rules. Exit 12: tool uses are waiting. (If only child threads wait, the run ends after 30 s without an event.) 14: something was denied, or a --tool command failed with --fail-on-tool-error. 15: a deadline, limit or interrupt stopped the run. 9: the deadline passed before the task was sent; run it again.",
  ],

  printsLines: true,

  flagRules: {
    '--tool-timeout': { requires: ['--tool'] },
    '--fail-on-tool-error': { requires: ['--tool'] },
  },

  examples: [
    "parley events run 'Test it' -s sesn_1 --policy rules.json --audit log.ndjson",
    'parley events run -s sesn_1 --policy rules.json --audit log.ndjson',
    "parley events run 'Review it' -s sesn_1 --schema verdict.json -o verdict.out",
    "parley events run 'Deploy' -s sesn_1 --tool deploy='jq -r .env | ./deploy.sh'",
  ],

  async run(context, options: RunOptions, words) {
    rejectPositionalSessionId(context, options, words, '; --message sends it as text')
    return runTask(context, await readRunPlan(context, options, words))
  },
} satisfies CommandModule
