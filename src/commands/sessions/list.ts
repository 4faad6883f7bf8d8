import { Option } from 'commander'
import { appendFlagValue, parsePositiveCount } from '../../argv/flags.ts'
import { createBetaFlags } from '../../sessions/session.ts'
import { listSessions } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

const statuses = ['idle', 'running', 'rescheduling', 'terminated']

export default {
  parameters: () => [
    new Option('--status <status>', 'only sessions with this status, repeatable')
      .choices(statuses)
      .argParser(appendFlagValue),
    new Option('--limit <n>', 'only the first N sessions; a service lists the newest first').argParser(
      parsePositiveCount,
    ),
    new Option('--ids', 'print ids only'),
    ...createBetaFlags(),
  ],
  notes: ['In a pipe each line has id, status, title and time of the last change, separated by tabs.'],
  printsLines: true,
  examples: ['parley sessions list', 'parley sessions list --status idle --limit 5 --ids'],
  run: listSessions,
} satisfies CommandModule
