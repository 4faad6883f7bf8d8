import type { Entry } from '../commands/command.ts'
import type { configCommands } from '../commands/config.ts'

const loadConfig = async (name: keyof typeof configCommands) => ({
  default: (await import('../commands/config.ts')).configCommands[name],
})

/** Every command by its words; a command's module is loaded when it is called. */
export const entries: Record<string, Entry> = {
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
      "No command here makes a session: -s ID or PARLEY_SESSION names one that exists. 'parley api agents /v1/sessions' lists the sessions, and with -i FILE it makes one, if the service offers that. The documents of the service say what the file has to hold. With '--profile demo' any name is a session.",
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
      init: {
        summary: 'ask for everything a profile needs',
        load: () => loadConfig('init'),
      },
      check: {
        summary: 'try the addresses and credentials of a profile',
        requests: 'reads',
        without: ['--raw', '--dry-run', '--curl'],
        load: () => loadConfig('check'),
      },
      set: {
        summary: 'set a value in a profile',
        load: () => loadConfig('set'),
      },
      get: {
        summary: 'print a value of a profile',
        load: () => loadConfig('get'),
      },
      unset: {
        summary: 'remove a value from a profile',
        load: () => loadConfig('unset'),
      },
      list: { summary: 'list the values of a profile', load: () => loadConfig('list') },
      use: { summary: 'make a profile the current one', load: () => loadConfig('use') },
      profiles: { summary: 'list the profiles', load: () => loadConfig('profiles') },
      delete: { summary: 'delete a profile', load: () => loadConfig('delete') },
      path: { summary: "print the profile file's path", load: () => loadConfig('path') },
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
