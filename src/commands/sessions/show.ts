import { Argument } from 'commander'
import { type BetaOptions, betaFlags } from '../../sessions/session.ts'
import { showSession } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Argument('<session>', "the id of a session: 'parley sessions list' lists them"),
    ...betaFlags(),
  ],
  notes: [
    "It reads the session, and its events for what it waits for. --raw prints the service's answer only.",
  ],
  examples: ['parley sessions show sesn_1'],
  run: (context, options: BetaOptions, [id = '']) => showSession(context, options, id),
} satisfies CommandModule
