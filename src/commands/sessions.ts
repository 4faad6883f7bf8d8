import { Argument, Option } from 'commander'
import { appendFlagValue, FileFlag, parsePositiveCount } from '../argv/flags.ts'
import { createBetaFlags, type SessionOptions } from '../sessions/session.ts'
import { createSession, listSessions, showSession } from '../sessions/sessions.ts'
import type { CommandModule } from './command.ts'

export const sessionCommands = {
  list: {
    parameters: () => [
      new Option('--status <status>', 'only sessions with this status, repeatable')
        .choices(['idle', 'running', 'rescheduling', 'terminated'])
        .argParser(appendFlagValue),
      new Option('--limit <n>', 'only the first N sessions; a service lists the newest first').argParser(
        parsePositiveCount,
      ),
      new Option('--ids', 'print ids only'),
      ...createBetaFlags(),
    ],
    notes: ['In a pipe each line has id, status, title and time of the last change, separated by tabs.'],
    printsFailedBody: false,
    examples: ['parley sessions list', 'parley sessions list --status idle --limit 5 --ids'],
    run: listSessions,
  },

  create: {
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
  },

  show: {
    parameters: () => [
      new Argument('[session]', "the session (variable PARLEY_SESSION); 'parley sessions list' lists ids"),
      ...createBetaFlags(),
    ],
    notes: [
      'Reads the session, then its events, which show the waiting tool uses. --raw prints only the session as the service sent it, without tool uses.',
    ],
    examples: ['parley sessions show sesn_1'],
    run: (context, options: SessionOptions, words) => showSession(context, { ...options, session: words[0] }),
  },
} satisfies Record<string, CommandModule>
