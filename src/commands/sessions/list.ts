import { Option } from 'commander'
import { createBetaFlags } from '../../sessions/session.ts'
import { type ListSessionsOptions, listSessions } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [new Option('--ids', 'print ids only'), ...createBetaFlags()],
  notes: ['In a pipe each line has id, status, title and time of the last change, separated by tabs.'],
  printsLines: true,
  examples: ['parley sessions list', 'parley sessions list --ids'],
  run: (context, options: ListSessionsOptions) => listSessions(context, options),
} satisfies CommandModule
