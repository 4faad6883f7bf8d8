import type { CommandEntry } from '../commands/command.ts'
import type { configCommands } from '../commands/config.ts'
import { topics } from './topics.ts'

const createConfigEntry = (name: keyof typeof configCommands, summary: string): CommandEntry => ({
  summary,
  load: async () => ({ default: (await import('../commands/config.ts')).configCommands[name] }),
})

export const commandEntries: Record<string, CommandEntry> = {
  chat: {
    summary: 'ask a model and print the answer',
    requests: 'changes',
    load: () => import('../commands/chat.ts'),
  },
  image: {
    summary: 'generate images and save them',
    requests: 'changes',
    load: () => import('../commands/image.ts'),
  },
  events: {
    summary: 'send events to an agent session and read them',
    notes: [
      "-s ID or PARLEY_SESSION names a session: 'parley sessions list' lists them, and 'parley sessions create' creates one. With '--profile demo', any name works.",
    ],
    group: {
      send: {
        summary: 'send events to a session',
        requests: 'changes',
        load: () => import('../commands/events/send.ts'),
      },
      confirm: {
        summary: 'allow or deny waiting tool uses',
        requests: 'changes',
        load: () => import('../commands/events/confirm.ts'),
      },
      run: {
        summary: 'send a task, answer tool uses by a policy, exit when the work is done',
        requests: 'changes',
        load: () => import('../commands/events/run.ts'),
      },
      list: {
        summary: "read a session's events",
        requests: 'reads',
        load: () => import('../commands/events/list.ts'),
      },
      follow: {
        summary: "print a session's events as they happen",
        requests: 'reads',
        load: () => import('../commands/events/follow.ts'),
      },
    },
  },
  sessions: {
    summary: 'list agent sessions, create one, show one',
    group: {
      list: {
        summary: 'list the sessions',
        requests: 'reads',
        load: () => import('../commands/sessions/list.ts'),
      },
      create: {
        summary: 'create a session',
        requests: 'changes',
        load: () => import('../commands/sessions/create.ts'),
      },
      show: {
        summary: 'show the status, usage and waiting tool uses of a session',
        requests: 'reads',
        load: () => import('../commands/sessions/show.ts'),
      },
    },
  },
  api: {
    summary: 'call any other endpoint of a service',
    requests: 'changes',
    load: () => import('../commands/api.ts'),
  },
  policy: {
    summary: 'test rules for tool uses',
    group: {
      check: {
        summary: 'test a policy on recorded or live tool uses',
        requests: 'reads',
        load: () => import('../commands/policy/check.ts'),
      },
    },
  },
  config: {
    summary: 'manage profiles and credentials',
    group: {
      init: createConfigEntry('init', 'prompt for everything a profile needs'),
      check: {
        ...createConfigEntry('check', 'test the addresses and credentials of a profile'),
        requests: 'reads',
        without: ['--raw', '--dry-run', '--curl'],
      },
      set: createConfigEntry('set', 'set a value in a profile'),
      get: createConfigEntry('get', 'print a value of a profile'),
      unset: createConfigEntry('unset', 'remove a value from a profile'),
      list: createConfigEntry('list', 'list the values of a profile'),
      use: createConfigEntry('use', 'make a profile the current one'),
      profiles: createConfigEntry('profiles', 'list the profiles'),
      delete: createConfigEntry('delete', 'delete a profile'),
      path: createConfigEntry('path', "print the profile file's path"),
    },
  },
  serve: {
    summary: 'run a local emulator of both services, for testing',
    load: () => import('../commands/serve.ts'),
  },
  completion: {
    summary: 'print a script for TAB completion',
    load: () => import('./completion.ts'),
  },
  help: { summary: 'print help on a command or a topic', load: () => import('./help.ts') },
}

export const rootCommandEntry: CommandEntry = {
  summary: 'one command for a model gateway and an agent session service',
  group: commandEntries,
  notes: [
    "'parley config init' sets up your own addresses and credentials.",
    `Each command has --help. Topics: settings (shared flags), ${topics.filter((name) => name !== 'settings').join(', ')}.`,
  ],
}
