import { Argument, Option } from 'commander'
import { FileFlag, TextFlag } from '../../argv/flags.ts'
import { type ConfirmOptions, confirmToolUses } from '../../sessions/confirming/confirm.ts'
import { refuseSessionWord, sessionFlags } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[tool-use-id...]', 'the tool uses to answer'),
    ...sessionFlags(),
    new Option('--allow', 'allow them'),
    new Option('--deny', 'deny them'),
    new TextFlag('--message <text>', 'why they are denied, or @FILE'),
    new Option('--pending', 'answer those that the service says are waiting; the default on a terminal'),
    new FileFlag('-i, --input <file>', 'recorded events, or confirmations, from a file or - for stdin'),
    new Option('--ids', 'print ids only; with --follow the ids of the tool uses that wait'),
    new Option('--follow', 'then follow the session until it stops'),
  ],

  notes: [
    'Without ids it reads events from stdin or -i, and answers the tool uses that the last session.status_idle there lists, and those of child threads. Without an idle event all of them have to be user.tool_confirmation events, which are sent as they are.',
    "Without --allow and --deny it shows each tool use on a terminal, as the session's list has it, and asks: y allows it, n denies it, n REASON also tells the agent why, s leaves it open. q or Ctrl-D stops asking: the answers before are sent, and the rest stays open. The exit code is 12 if anything stays open.",
    "Right before the answers are sent the list is read again. A tool use that somebody else has answered, or that was interrupted, is left alone; one that has another input by then stays open. With --allow or --deny no list is read. 'parley events run' without a task decides by rules: see 'parley help policy'.",
  ],

  companions: { '--message': { needs: ['--deny'] } },

  examples: [
    'parley events confirm -s sesn_1 toolu_1 --allow',
    "parley events confirm -s sesn_1 --pending --deny --message 'not today'",
    'parley events list -s sesn_1 --raw | parley events confirm -s sesn_1 --allow',
  ],

  async run(context, options: ConfirmOptions, ids) {
    refuseSessionWord(context, options, ids)
    return confirmToolUses(context, options, ids)
  },
} satisfies CommandModule
