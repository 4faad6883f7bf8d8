import type { CommandEntry } from '../commands/command.ts'
import type { configCommands } from '../commands/config.ts'
import { topics } from './topics.ts'

const ofConfig = (name: keyof typeof configCommands, summary: string): CommandEntry => ({
  summary,
  load: async () => ({ default: (await import('../commands/config.ts')).configCommands[name] }),
})

/** Every command by its words. A command's module is loaded when the command is called. */
export const entries: Record<string, CommandEntry> = {
  chat: {
    summary: 'ask a model, print the answer',
    requests: 'changes',
    load: () => import('../commands/chat.ts'),
  },
  image: {
    summary: 'make images, save them as files',
    requests: 'changes',
    load: () => import('../commands/image.ts'),
  },
  events: {
    summary: 'send events to an agent session, and read them',
    notes: [
      "-s ID or PARLEY_SESSION names a session: 'parley sessions list' lists them, and 'parley sessions create' creates one. With '--profile demo' any name is a session.",
    ],
    group: {
      send: {
        summary: 'send events to a session',
        requests: 'changes',
        load: () => import('../commands/events/send.ts'),
      },
      confirm: {
        summary: 'allow or deny tool uses that a session waits on',
        requests: 'changes',
        load: () => import('../commands/events/confirm.ts'),
      },
      run: {
        summary: 'send a task, answer what the agent asks for by a policy, end when it is done',
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
        summary: 'show the status and usage of a session, and what it waits for',
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
    summary: 'try rules that decide about tool uses',
    group: {
      check: {
        summary: 'say what a policy would do about the tool uses of a session',
        requests: 'reads',
        load: () => import('../commands/policy/check.ts'),
      },
    },
  },
  config: {
    summary: 'manage profiles and credentials',
    group: {
      init: ofConfig('init', 'ask for everything a profile needs'),
      check: {
        ...ofConfig('check', 'try the addresses and credentials of a profile'),
        requests: 'reads',
        without: ['--raw', '--dry-run', '--curl'],
      },
      set: ofConfig('set', 'set a value in a profile'),
      get: ofConfig('get', 'print a value of a profile'),
      unset: ofConfig('unset', 'remove a value from a profile'),
      list: ofConfig('list', 'list the values of a profile'),
      use: ofConfig('use', 'make a profile the current one'),
      profiles: ofConfig('profiles', 'list the profiles'),
      delete: ofConfig('delete', 'delete a profile'),
      path: ofConfig('path', "print the profile file's path"),
    },
  },
  serve: {
    summary: 'run a local emulator of both services, for testing',
    load: () => import('../commands/serve.ts'),
  },
  completion: {
    summary: 'print a script that makes TAB complete the words of parley',
    load: () => import('./completion.ts'),
  },
  help: { summary: 'print help on a command or a topic', load: () => import('./help.ts') },
}

/** `parley` itself. */
export const rootEntry: CommandEntry = {
  summary: 'one command for a model gateway and an agent session service',
  group: entries,
  notes: [
    "Then 'parley config init' asks for your own addresses and credentials.",
    `Each command has --help. Topics: settings (shared flags), ${topics.filter((name) => name !== 'settings').join(', ')}.`,
  ],
}
