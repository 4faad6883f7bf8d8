import { Argument } from 'commander'
import { createBetaFlags, type SessionOptions } from '../../sessions/session.ts'
import { showSession } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[session]', "the session (variable PARLEY_SESSION); 'parley sessions list' lists ids"),
    ...createBetaFlags(),
  ],
  notes: [
    'Reads the session, then its events, which show the waiting tool uses. --raw prints only the session as the service sent it, without tool uses.',
  ],
  examples: ['parley sessions show sesn_1'],
  run: (context, options: SessionOptions, words) => showSession(context, { ...options, session: words[0] }),
} satisfies CommandModule
