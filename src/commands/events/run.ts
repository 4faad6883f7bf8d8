import type { Command } from 'commander'
import { addValue, FileFlag, failOnEmptyFlag, InputFlag } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { type RunOptions, runTask } from '../../sessions/running/run.ts'
import { declareEventFlags } from '../../sessions/sending/event-flags.ts'
import { declareSessionFlags } from '../../sessions/session.ts'

export function declare(command: Command): void {
  command.argument('[task...]', 'a message; without any event it takes up the session as it is')
  declareSessionFlags(command)
  command
    .addOption(new InputFlag('-i, --input <file>', 'events as JSON, or - for stdin'))
    .addOption(new FileFlag('--policy <file>', 'the rules that decide about tool uses', 'reads'))
    .addOption(new FileFlag('--audit <file>', 'record decisions and answers, to go on by it', 'keeps'))
    .option('--tool <name=command>', 'carry out a tool by a command, repeatable', addValue)
    .option('--tool-timeout <seconds>', 'the longest time for a command (default 600)')
  declareEventFlags(command)
  command
    .option('--no-validate', 'send what was given, if it is JSON')
    .addOption(failOnEmptyFlag())
    .option('--ids', 'print only the ids of the tool uses that wait')
}

export const notes = [
  "'parley help policy' describes the rules. Exit 12: tool uses wait for an answer; 14: something was denied; 15: the deadline passed.",
]

export const examples = [
  "parley events run 'Test it' -s sesn_1 --policy rules.json --audit log.ndjson",
  'parley events run -s sesn_1 --policy rules.json --audit log.ndjson',
  "parley events run 'Deploy' -s sesn_1 --tool deploy='jq -r .env | ./deploy.sh'",
]

export const run = (context: Context, options: RunOptions, words: string[]): Promise<void> =>
  runTask(context, options, words)
