import { Argument, type Command, Option } from 'commander'
import type { ApiOptions } from '../api/call.ts'
import { addValue, FileFlag } from '../argv/flags.ts'
import type { Context } from '../context.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

export function declare(command: Command): void {
  command
    .addArgument(new Argument('<service>', 'the service that is called').choices(['gateway', 'agents']))
    .argument('<path>', 'the path, with its query, as it is sent')
    .addOption(
      new Option('-X, --method <method>', 'the method (default: GET, or POST with a body)').choices(methods),
    )
    .addOption(new FileFlag('-i, --input <file>', 'the body, from a file or - for stdin'))
    .option('--set <path=value>', 'set any field of the JSON body, repeatable', addValue)
    .addOption(
      new FileFlag('-o, --output <file>', 'write a complete answer to a file, replacing the file', 'writes'),
    )
    .option('--include', 'print the status line and headers before the body')
    .option('--paginate', 'GET: print the items of all pages, one a line')
}

export const notes = [
  'It prints the body of the answer as it came, whatever the status. The exit code says how the call ended. On a terminal JSON of up to 1 MiB is laid out, unless --raw is given. A GET is tried again if that may help. Another method is tried again only if nothing was sent, or with --retry-unknown.',
]

export const examples = [
  'parley api agents /v1/sessions --set agent=agent_1 --set environment_id=env_1',
  'parley api agents /v1/sessions/sesn_1/events --include',
  'parley api agents /v1/sessions/sesn_1/events -i events.json',
  'parley api agents /v1/sessions/sesn_1/events --paginate',
]

export async function run(context: Context, options: ApiOptions, words: string[]): Promise<void> {
  const { callApi } = await import('../api/call.ts')
  return callApi(context, options, words)
}
