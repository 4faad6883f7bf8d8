import { Option } from 'commander'
import type { CliError } from '../../errors.ts'
import { createEventStreamRequest } from '../../sessions/following/event-stream.ts'
import { Follower } from '../../sessions/following/follower.ts'
import { createEventPrinter, followAndPrint } from '../../sessions/following/transcript.ts'
import { createSessionClient, createSessionFlags, type SessionOptions } from '../../sessions/session.ts'
import { describeFollowCommand, formatSessionCommand } from '../../sessions/session-command.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { CommandModule } from '../command.ts'

interface FollowFlags extends SessionOptions {
  history?: boolean
  stay?: boolean
}

export default {
  parameters: () => [
    ...createSessionFlags(),
    new Option('--history', 'also print earlier events'),
    new Option('--stay', 'keep following after the session stops, until it is terminated'),
  ],

  notes: [
    "Waits for the first event if the session has none. Ends when the session is idle and the agent's workflow runs have ended, when tool uses wait, or when the session cannot continue. Exit 0: the agent finished. 12: tool uses are waiting ('parley events confirm'). 13: the session was terminated or cannot continue (for example, its budget is used up), or the outcome was not reached. 15: the --deadline passed. 8: all requests failed for 5 minutes.",
    'Tool uses can wait in a child thread while the session is still running. If no thread is working and no event arrives for 30 s, the command ends with exit code 12.',
    "In a pipe, prints each of the agent's messages as plain text, and any other event as a tab-separated line: id, type, time and text. For programs, --raw prints one JSON event per line.",
  ],

  examples: [
    'parley events follow -s sesn_1',
    'parley events follow -s sesn_1 --history --deadline 10m',
    'parley events follow -s sesn_1 --raw > events.ndjson',
  ],

  async run(context, flags: FollowFlags) {
    const { history: hasHistory, stay: followsForever = false } = flags
    const access = await createSessionClient(context, flags)
    const { caller, parts, settings } = access
    if (await caller.preview(endpoints.followEvents, createEventStreamRequest(parts))) return
    const { markdown } = settings.values
    const printer = createEventPrinter(context, { markdown })
    const follower = new Follower(access, followsForever)
    const { state } = follower
    await follower.open(hasHistory ? { onEarlierEvents: (items) => printer.print(items) } : {})
    try {
      const command = formatSessionCommand(access, 'follow')
      const onInterrupt = () => describeFollowCommand(command, state.stop !== undefined)
      const explain = (failure: CliError) =>
        failure.kind === 'stopped'
          ? failure.with(follower.describeWaitingToolUses() ?? { consequence: onInterrupt() })
          : failure
      const options = { printer, followsForever }
      await context.tracker.during({ onInterrupt, explain }, () => followAndPrint(access, follower, options))
    } finally {
      follower.close()
    }
  },
} satisfies CommandModule
