import { Argument, Option } from 'commander'
import {
  appendFlagValue,
  createFailOnEmptyFlag,
  FileFlag,
  parseAmount,
  parsePositiveCount,
} from '../../argv/flags.ts'
import { readRunPlan } from '../../sessions/running/plan.ts'
import { runTask } from '../../sessions/running/run.ts'
import { createEventFlags } from '../../sessions/sending/event-flags.ts'
import { createSessionFlags, rejectPositionalSessionId } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[task...]', 'the task; without a task or other events, continue the session'),
    ...createSessionFlags('accept undocumented betas, and any JSON as events'),
    new FileFlag('-i, --input <file>', 'events as JSON from a file, or - for stdin'),
    new Option(
      '--after <id>',
      'continue after this event, and print later events; the printed resume command contains this flag',
    ),
    new FileFlag('--policy <file>', "rules for tool uses; see 'parley help policy'"),
    new FileFlag(
      '--audit <file>',
      'record decisions; after a kill, the same command continues the task and does not send it again',
      'updates',
    ),
    new Option(
      '--tool <name=command>',
      'execute tool NAME by this shell command, with the input on stdin; repeatable',
    ).argParser(appendFlagValue),
    new Option('--tool-timeout <seconds>', 'maximum time for a --tool command (default 600)'),
    new Option('--fail-on-tool-error', 'exit 14 if a --tool command failed or timed out'),
    new Option('--max-total-tokens <n>', 'interrupt the session after N tokens of this run').argParser(
      parsePositiveCount,
    ),
    new Option(
      '--max-cost <amount>',
      "interrupt the session once the run costs this much at list prices, such as 2.50 (service's currency)",
    ).argParser(parseAmount),
    ...createEventFlags({ isInHelp: false }),
    createFailOnEmptyFlag(),
    new Option('--last', "print only the agent's answer"),
    new FileFlag('-o, --output <file>', 'write the answer to a file; replace an existing file', 'writes'),
    new FileFlag('--schema <file>', 'require JSON that matches this schema, or exit 8'),
  ],

  notes: [
    "The flags from --message to --event of 'parley events send' work here, too. With --audit, the run after a kill reports unfinished --tool commands as failed.",
    "The answer is the agent's last message in the main thread after the task. It is final when the session is idle (exit 0 or 14). --schema adds the schema to the task; the answer must match it.",
    'Start one run per session at a time (in CI: use a concurrency group), because each run sends its task. On one machine, a second run waits for the first.',
    'Limits and usage cover only this command, not a run that it resumes. In the report, sessionUsage and sessionCost count the whole session. Usage is known only after a model request, so a run can exceed a limit.',
    'Exit 12: tool uses wait (if only child threads wait, after 30 s of silence). 14: one was denied, or ran despite the policy. 15: a deadline (the agent may continue), limit or interrupt. 9: a deadline before the task was sent (11: at a lock). 8: no answer for --last, -o or --schema, or another client wrote first.',
  ],

  printsFailedBody: false,

  flagRules: {
    '--tool-timeout': { requires: ['--tool'] },
    '--fail-on-tool-error': { requires: ['--tool'] },
    '--last': { excludes: ['--raw'] },
  },

  examples: [
    "parley events run 'Test it' -s sesn_1 --policy rules.json --audit log.ndjson",
    'parley events run -s sesn_1 --policy rules.json --audit log.ndjson',
    "parley events run 'Review it' -s sesn_1 --schema verdict.json -o verdict.out",
    "parley events run 'Deploy' -s sesn_1 --tool deploy='jq -r .env | ./deploy.sh'",
  ],

  async run(context, options, words) {
    rejectPositionalSessionId(context, options, words, '; --message sends it as text')
    return runTask(context, await readRunPlan(context, options, words))
  },
} satisfies CommandModule
