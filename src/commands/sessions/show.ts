import { Argument } from 'commander'
import { type BetaOptions, createBetaFlags } from '../../sessions/session.ts'
import { showSession } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('[session]', "the session (environment PARLEY_SESSION): 'parley sessions list' lists ids"),
    ...createBetaFlags(),
  ],
  notes: [
    "Reads the session, and its events to show the tool uses for which it waits. --raw prints the service's answer only.",
  ],
  examples: ['parley sessions show sesn_1'],
  run: (context, options: BetaOptions, words) => showSession(context, { ...options, session: words[0] }),
} satisfies CommandModule
