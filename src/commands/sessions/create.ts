import { Option } from 'commander'
import { FileFlag } from '../../argv/flags.ts'
import { createBetaFlags } from '../../sessions/session.ts'
import { createSession } from '../../sessions/sessions.ts'
import type { CommandModule } from '../command.ts'

export default {
  parameters: () => [
    new Option('--agent <id>', 'the agent'),
    new Option('--environment <id>', 'the environment'),
    new Option('--title <text>', 'a title'),
    new FileFlag(
      '-i, --input <file>',
      'a request body, from a file or - for stdin; --agent, --environment and --title replace its fields',
    ),
    ...createBetaFlags(),
  ],
  notes: [
    "Prints the id of the new session. This request is not in the service's specification, so a service may reject it.",
  ],
  examples: [
    'parley sessions create --agent agent_1 --environment env_1',
    'parley sessions create --agent agent_1 --environment env_1 --title Nightly',
  ],
  run: createSession,
} satisfies CommandModule
