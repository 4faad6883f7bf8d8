import { Argument, Option } from 'commander'
import type { ApiOptions } from '../api/call.ts'
import { appendFlagValue, FileFlag } from '../argv/flags.ts'
import type { CommandModule } from './command.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export default {
  parameters: () => [
    new Argument('<service>', 'the service').choices(['gateway', 'agents']),
    new Argument('<path>', 'a path such as /v1/sessions, with any query string'),
    new Option('-X, --method <method>', 'the method (default: GET, or POST with a body)').choices(methods),
    new FileFlag('-i, --input <file>', 'the body: a file, or - for stdin (parley reads stdin only with -)'),
    new Option('--set <path=value>', 'set any field of the JSON body, repeatable').argParser(appendFlagValue),
    new FileFlag(
      '-o, --output <file>',
      'write a complete response to a file, replacing it; an error response goes to stdout',
      'writes',
    ),
    new Option('--include', 'print the status line and headers before the body'),
    new Option('--paginate', 'GET: print the items of all pages, one per line'),
  ],

  notes: [
    'Prints the response body byte for byte, whatever the status. With --paginate, parley does not print the body of an error. The exit code reflects the status. parley retries GET, HEAD and OPTIONS after transient failures. It retries other methods only if the service did not accept the request, or with --retry-unknown.',
  ],

  printsFailedBody: true,

  flagRules: { '--paginate': { excludes: ['--include'] } },

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
