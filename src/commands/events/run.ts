import { Argument, Option } from 'commander'
import { appendValue, FileFlag, failOnEmptyFlag, parseAmount, parsePositiveCount } from '../../argv/flags.ts'
import type { RunOptions } from '../../sessions/running/plan.ts'
import { runTask } from '../../sessions/running/run.ts'
import { eventFlags } from '../../sessions/sending/event-flags.ts'
import { refuseSessionWord, sessionFlags } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[task...]', 'a message; without any event it takes up the session as it is'),
    ...sessionFlags({ unchecked: 'accept any events that are JSON, and undocumented betas' }),
    new FileFlag('-i, --input <file>', 'events as JSON, or - for stdin'),
    new FileFlag('--policy <file>', 'the rules that decide about tool uses'),
    new FileFlag('--audit <file>', 'keep decisions and answers: the same line goes on', 'keeps'),
    new Option(
      '--tool <name=command>',
      'carry out a tool by a command, which ends when its stdout is closed; repeatable',
    ).argParser(appendValue),
    new Option('--tool-timeout <seconds>', 'the longest time for a command (default 600)'),
    new Option('--fail-on-tool-error', 'exit 14 if a command failed or timed out'),
    new Option('--max-total-tokens <n>', 'interrupt the agent once the run used N tokens').argParser(
      parsePositiveCount,
    ),
    new Option('--max-cost <amount>', 'the same by list cost, such as 2.50').argParser(parseAmount),
    ...eventFlags({ isListed: false }),
    failOnEmptyFlag(),
    new Option('--ids', 'print only the ids of the tool uses that wait'),
    new Option('--last', "print only the agent's answer"),
    new FileFlag('-o, --output <file>', 'write the whole answer to a file, replacing it', 'writes'),
    new FileFlag('--schema <file>', 'print JSON that fits this JSON Schema, or exit 8'),
  ],

  notes: [
    "The flags for events that 'parley events send --help' shows work here too.",
    'The answer is the last message of the main thread after the task, once the session is at rest (exit 0 or 14). --schema tells the agent which form it must have, and checks only the answer, nothing that came before.',
    'Let only one run at a time work on a session. On one machine a second one waits by itself. After a kill, run the same line again, with --audit: a task that the file shows as sent is not sent again before it was done.',
    '--max-total-tokens and --max-cost interrupt the agent, at least one model request too late: the service tells only afterwards what a request used. They hold for each run anew: as in its footer and --report, only what came since it began counts. The command that goes on is printed.',
    "'parley help policy' describes the rules. Exit 12: tool uses wait for an answer. 14: something was denied, or with --fail-on-tool-error a command failed. 15: the deadline or a bound stopped it. If the deadline passes before the task is sent, it is 9: run the same line again.",
  ],

  printsLines: true,

  companions: {
    '--tool-timeout': { needs: ['--tool'] },
    '--fail-on-tool-error': { needs: ['--tool'] },
  },

  examples: [
    "parley events run 'Test it' -s sesn_1 --policy rules.json --audit log.ndjson",
    'parley events run -s sesn_1 --policy rules.json --audit log.ndjson',
    "parley events run 'Review it' -s sesn_1 --schema verdict.json -o verdict.out",
    "parley events run 'Deploy' -s sesn_1 --tool deploy='jq -r .env | ./deploy.sh'",
  ],

  async run(context, options: RunOptions, words) {
    refuseSessionWord(context, options, words, '; --message sends it as text')
    return runTask(context, options, words)
  },
} satisfies CommandModule
