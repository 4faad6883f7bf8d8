import { Argument, Option } from 'commander'
import type { ApiOptions } from '../api/call.ts'
import { appendValue, FileFlag } from '../argv/flags.ts'
import type { CommandModule } from './command.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export default {
  parameters: () => [
    new Argument('<service>', 'the service that is called').choices(['gateway', 'agents']),
    new Argument('<path>', 'the path, with its query, as it is sent'),
    new Option('-X, --method <method>', 'the method (default: GET, or POST with a body)').choices(methods),
    new FileFlag('-i, --input <file>', 'the body, from a file or - for stdin'),
    new Option('--set <path=value>', 'set any field of the JSON body, repeatable').argParser(appendValue),
    new FileFlag('-o, --output <file>', 'write a complete answer to a file, replacing the file', 'writes'),
    new Option('--include', 'print the status line and headers before the body'),
    new Option('--paginate', 'GET: print the items of all pages, one a line'),
  ],

  notes: [
    'It prints the body of the answer as it came, whatever the status. The exit code says how the call ended. On a terminal JSON of up to 1 MiB is laid out, unless --raw is given. A GET is tried again if that may help. Another method is tried again only if nothing was sent, or with --retry-unknown.',
  ],

  examples: [
    'parley api agents /v1/sessions --set agent=agent_1 --set environment_id=env_1',
    'parley api agents /v1/sessions/sesn_1/events --include',
    'parley api agents /v1/sessions/sesn_1/events -i events.json',
    'parley api agents /v1/sessions/sesn_1/events --paginate',
  ],

  async run(context, options: ApiOptions, words) {
    const { callApi } = await import('../api/call.ts')
    return callApi(context, options, words)
  },
} satisfies CommandModule
