import { Argument, Option } from 'commander'
import { FileFlag, TextFlag } from '../../argv/flags.ts'
import { type ConfirmOptions, confirmToolUses } from '../../sessions/confirming/confirm.ts'
import { createSessionFlags, rejectPositionalSessionId } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[tool-use-id...]', 'the tool uses to answer'),
    ...createSessionFlags(),
    new Option('--allow', 'allow the tool uses'),
    new Option('--deny', 'deny the tool uses'),
    new TextFlag('--message <text>', 'reason for the denial, or @FILE'),
    new Option('--pending', 'answer all waiting tool uses; the default on a terminal'),
    new FileFlag('-i, --input <file>', 'recorded events or ready confirmations, from a file or - for stdin'),
    new Option('--ids', 'print the ids of the sent events; with --follow, the ids of waiting tool uses'),
    new Option('--follow', 'then follow the session until it stops'),
  ],

  notes: [
    'Without ids, parley reads events from stdin or -i and answers the tool uses that the last session.status_idle event lists, and those of child threads. If there is no idle event, all events must be user.tool_confirmation events, which parley sends unchanged.',
    'Without --allow and --deny, parley prints each tool use on the terminal and prompts you: y allows, n denies, n REASON denies with a reason for the agent, s skips. q or Ctrl-D stops: parley sends the answers so far. If a tool use stays open, the exit code is 12.',
    'Before parley sends your answers, it lists the events again. It skips tool uses that were answered or interrupted meanwhile; a tool use whose input changed stays open.',
    "With --pending and --allow or --deny, parley lists the events and answers every tool use that waits at that moment. With ids and --allow or --deny, it sends the answers without reading the session. To answer by rules, use 'parley events run' without a task: see 'parley help policy'.",
  ],

  flagRules: { '--message': { requires: ['--deny'] } },

  examples: [
    'parley events confirm -s sesn_1 toolu_1 --allow',
    "parley events confirm -s sesn_1 --pending --deny --message 'not today'",
    'parley events list -s sesn_1 --raw | parley events confirm -s sesn_1 --allow',
  ],

  async run(context, options: ConfirmOptions, ids) {
    rejectPositionalSessionId(context, options, ids)
    return confirmToolUses(context, options, ids)
  },
} satisfies CommandModule
