import type { Command } from 'commander'
import {
  addValue,
  type Companions,
  FileFlag,
  failOnEmptyFlag,
  parseAmount,
  parseCount,
} from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import type { RunOptions } from '../../sessions/running/plan.ts'
import { runTask } from '../../sessions/running/run.ts'
import { declareEventFlags } from '../../sessions/sending/event-flags.ts'
import { declareSessionFlags, refuseSessionWord } from '../../sessions/session.ts'

export function declare(command: Command): void {
  command.argument('[task...]', 'a message; without any event it takes up the session as it is')
  declareSessionFlags(command)
  command
    .addOption(new FileFlag('-i, --input <file>', 'events as JSON, or - for stdin'))
    .addOption(new FileFlag('--policy <file>', 'the rules that decide about tool uses'))
    .addOption(new FileFlag('--audit <file>', 'keep decisions and answers: the same line goes on', 'keeps'))
    .option(
      '--tool <name=command>',
      'carry out a tool by a command, which ends when its stdout is closed; repeatable',
      addValue,
    )
    .option('--tool-timeout <seconds>', 'the longest time for a command (default 600)')
    .option('--max-total-tokens <n>', 'interrupt the agent once the run used N tokens', parseCount)
    .option('--max-cost <amount>', 'the same by list cost, such as 2.50', parseAmount)
  declareEventFlags(command, { isListed: false })
  command
    .option('--no-validate', 'send what was given, if it is JSON')
    .addOption(failOnEmptyFlag())
    .option('--ids', 'print only the ids of the tool uses that wait')
    .option('--last', "print only the agent's answer")
    .addOption(
      new FileFlag('-o, --output <file>', 'write the whole answer to a file, replacing it', 'writes'),
    )
    .addOption(new FileFlag('--schema <file>', 'print JSON that fits this JSON Schema, or exit 8'))
}

export const notes = [
  "The flags for events that 'parley events send --help' shows work here too.",
  'The answer is the last message of the main thread after the task, once the session is at rest (exit 0 or 14). --schema tells the agent which form it must have, and checks only the answer, nothing that came before.',
  'Let only one run at a time work on a session. On one machine a second one waits by itself. After a kill, run the same line again, with --audit: a task that the file shows as sent is not sent again before it was done.',
  '--max-total-tokens and --max-cost interrupt the agent, at least one model request too late: the service tells only afterwards what a request used. They hold for each run anew: as in its footer and --report, only what came since it began counts. The command that goes on is printed.',
  "'parley help policy' describes the rules. Exit 12: tool uses wait for an answer. 14: something was denied. 15: the deadline or a bound stopped it. If the deadline passes before the task is sent, it is 9: run the same line again.",
]

export const companions: Companions = {
  '--tool-timeout': { needs: ['--tool'] },
}

export const examples = [
  "parley events run 'Test it' -s sesn_1 --policy rules.json --audit log.ndjson",
  'parley events run -s sesn_1 --policy rules.json --audit log.ndjson',
  "parley events run 'Review it' -s sesn_1 --schema verdict.json -o verdict.out",
  "parley events run 'Deploy' -s sesn_1 --tool deploy='jq -r .env | ./deploy.sh'",
]

export async function run(context: Context, options: RunOptions, words: string[]): Promise<void> {
  refuseSessionWord(context, options, words, '; --message sends it as text')
  return runTask(context, options, words)
}
