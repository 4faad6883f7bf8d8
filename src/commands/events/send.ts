import { Argument, Option } from 'commander'
import { createFailOnEmptyFlag, FileFlag } from '../../argv/flags.ts'
import { usageError } from '../../errors.ts'
import { deliverEvents } from '../../sessions/sending/delivery.ts'
import { createEventFlags } from '../../sessions/sending/event-flags.ts'
import { createEventsBody } from '../../sessions/sending/request.ts'
import {
  createSessionClient,
  createSessionFlags,
  rejectPositionalSessionId,
  type SessionOptions,
} from '../../sessions/session.ts'
import type { CommandModule } from '../command.ts'

interface SendOptions extends SessionOptions {
  input?: string
  file?: string[]
  ids?: boolean
  follow?: boolean
}

export default {
  parameters: () => [
    new Argument('[message...]', "the message text; piped text is appended, or inserted at '-'"),
    ...createSessionFlags('accept undocumented betas, and any JSON as events'),
    new FileFlag(
      '-i, --input <file>',
      'events from a file, or - for stdin, as JSON: a request body, a list, or one event per line',
    ),
    ...createEventFlags(),
    createFailOnEmptyFlag(),
    new Option('--ids', 'print only the ids of the sent events'),
    new Option('--follow', 'then follow the session until it stops'),
  ],

  flagRules: { '--ids': { excludes: ['--follow'] } },
  examples: [
    "parley events send -s sesn_1 'Summarise the report' --follow",
    'parley events send -s sesn_1 --tool-result toolu_1=@out.txt',
    "parley events send -s sesn_1 -f diagram.png 'What is missing?'",
    'parley events send -s sesn_1 --ids < events.ndjson',
  ],

  async run(context, options: SendOptions, words) {
    rejectPositionalSessionId(context, options, words, '; --message sends it as text')
    const access = await createSessionClient(context, options)
    const body = await createEventsBody(context, options, words)
    if (!body)
      throw usageError(
        'no events, and stdin is empty or not read: give a message, event flags, or JSON through a pipe or -i FILE',
      )
    const { markdown } = access.settings.values
    await deliverEvents(access, body, { ...options, markdown })
  },
} satisfies CommandModule
