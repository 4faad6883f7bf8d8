import type { CommandEntry } from '../commands/command.ts'
import type { configCommands } from '../commands/config.ts'
import type { sessionCommands } from '../commands/sessions.ts'
import { topics } from './topics.ts'

type Load = CommandEntry['load']

const local = (summary: string, load: Load): CommandEntry => ({ summary, load })
const reads = (summary: string, load: Load): CommandEntry => ({ summary, requests: 'reads', load })
const changes = (summary: string, load: Load): CommandEntry => ({ summary, requests: 'changes', load })
const config = (name: keyof typeof configCommands, summary: string): CommandEntry =>
  local(summary, async () => ({ default: (await import('../commands/config.ts')).configCommands[name] }))
const session = (name: keyof typeof sessionCommands) => async () => ({
  default: (await import('../commands/sessions.ts')).sessionCommands[name],
})

export const commandEntries: Record<string, CommandEntry> = {
  chat: changes('ask a model and print the answer', () => import('../commands/chat.ts')),
  image: changes('generate images and save them', () => import('../commands/image.ts')),
  events: {
    summary: 'send events to an agent session and read them',
    notes: [
      "-s ID or PARLEY_SESSION names a session: 'parley sessions list' lists them, and 'parley sessions create' creates one. With '--profile demo', any name works.",
    ],
    group: {
      send: changes('send events to a session', () => import('../commands/events/send.ts')),
      confirm: changes('allow or deny waiting tool uses', () => import('../commands/events/confirm.ts')),
      run: changes(
        'send a task, answer tool uses by a policy, exit when the work is done',
        () => import('../commands/events/run.ts'),
      ),
      list: reads("read a session's events", () => import('../commands/events/list.ts')),
      follow: reads("print a session's events as they happen", () => import('../commands/events/follow.ts')),
    },
  },
  sessions: {
    summary: 'list agent sessions, create one, show one',
    group: {
      list: reads('list the sessions', session('list')),
      create: changes('create a session', session('create')),
      show: reads('show the status, usage and waiting tool uses of a session', session('show')),
    },
  },
  api: changes('call any other endpoint of a service', () => import('../commands/api.ts')),
  policy: {
    summary: 'test rules for tool uses',
    group: {
      check: reads(
        'test a policy on recorded or live tool uses',
        () => import('../commands/policy/check.ts'),
      ),
    },
  },
  config: {
    summary: 'manage profiles and credentials',
    group: {
      init: config('init', 'prompt for everything a profile needs'),
      check: { ...config('check', 'test the addresses and credentials of a profile'), requests: 'reads' },
      set: config('set', 'set a value in a profile'),
      get: config('get', 'print a value of a profile'),
      unset: config('unset', 'remove a value from a profile'),
      list: config('list', 'list the values of a profile'),
      use: config('use', 'make a profile the current one'),
      profiles: config('profiles', 'list the profiles'),
      delete: config('delete', 'delete a profile'),
      path: config('path', "print the profile file's path"),
    },
  },
  serve: local('run a local emulator of both services, for testing', () => import('../commands/serve.ts')),
  completion: local('print a script for TAB completion', async () => ({
    default: (await import('./completion.ts')).createCompletionCommand(rootCommandEntry),
  })),
  help: local('print help on a command or a topic', async () => ({
    default: (await import('./help.ts')).createHelpCommand(rootCommandEntry),
  })),
}

export const rootCommandEntry: CommandEntry = {
  summary: 'one command for a model gateway and an agent session service',
  group: commandEntries,
  notes: [
    "'parley config init' sets up your own addresses and credentials.",
    `Each command has --help. Topics: settings (shared flags), ${topics.filter((name) => name !== 'settings').join(', ')}.`,
  ],
}
