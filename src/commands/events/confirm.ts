import { Argument, Option } from 'commander'
import { FileFlag, TextFlag } from '../../argv/flags.ts'
import { confirmToolUses } from '../../sessions/confirming/confirm.ts'
import { createSessionFlags, rejectPositionalSessionId } from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[tool-use-id...]', 'the tool uses to answer'),
    ...createSessionFlags(),
    new Option('--allow', 'allow the tool uses'),
    new Option('--deny', 'deny the tool uses'),
    new TextFlag('--message <text>', 'reason for the denial, or @FILE'),
    new Option('--pending', 'answer all waiting tool uses (default when prompting without ids or input)'),
    new FileFlag(
      '-i, --input <file>',
      'file with recorded events, or with user.tool_confirmation events to send unchanged; - for stdin',
    ),
    new Option('--follow', 'then follow the session until it stops'),
  ],

  notes: [
    'From the events of stdin or -i, parley answers the tool uses listed in the last session.status_idle event, and those that wait in child threads. If the input has only user.tool_confirmation events, parley sends them unchanged.',
    'With neither --allow nor --deny, parley prints each tool use on the terminal and prompts you: y allows, n denies, n REASON denies with a reason for the agent, s skips. q or Ctrl-D stops: parley sends the answers so far. If a tool use stays open, the exit code is 12.',
    "After the prompts, parley reads the session's events again before it sends your answers. It skips a tool use that was answered or interrupted meanwhile. If the input of a tool use has changed, parley does not send your answer, and the tool use stays open.",
    "With --pending and --allow or --deny, parley lists the events and answers every tool use that waits at that moment. If a tool use that needs a result stays open, the exit code is 12. With ids and --allow or --deny, parley sends the answers without reading the session. To answer by rules, use 'parley events run' without a task: see 'parley help policy'.",
  ],

  flagRules: {
    '--allow': { excludes: ['--deny'] },
    '--message': { requires: ['--deny'] },
    '--pending': { excludes: ['--input', 'TOOL-USE-ID'] },
    '--input': { excludes: ['TOOL-USE-ID'] },
  },

  examples: [
    'parley events confirm -s sesn_1 toolu_1 --allow',
    "parley events confirm -s sesn_1 --pending --deny --message 'not today'",
    'parley events list -s sesn_1 --raw | parley events confirm -s sesn_1 --allow',
  ],

  async run(context, options, ids) {
    rejectPositionalSessionId(context, options, ids)
    return confirmToolUses(context, options, ids)
  },
} satisfies CommandModule
