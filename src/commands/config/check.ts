import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'

interface CheckFlags {
  ask?: boolean
  session?: string
}

export function declare(command: Command): void {
  command
    .option('--ask', 'also ask the model two short questions, which cost a few tokens')
    .option('-s, --session <id>', 'the session that tries the key (environment PARLEY_SESSION)')
}

export const notes = [
  'Of each service it tries the name, the connection, TLS and the credential: the key of the session service by reading one event of a session, which need not exist; the token of the gateway only with --ask, or after a yes on a terminal. Each line on stdout is ok, failed, or not tried, and says why. It exits 0 if nothing failed, else with the code of the first failure. A session service may be silent for 10 s, a model for 30 s, or for as long as --timeout on the command line says. --raw, --dry-run and --curl do not apply.',
]

export const examples = ['parley config check', 'parley config check -s sesn_1 --ask']

export async function run(context: Context, options: CheckFlags): Promise<void> {
  const { flags } = context
  if (flags.retryUnknown) throw usage('--retry-unknown works only with chat, image and api')
  const { checkProfile } = await import('../../check.ts')
  return checkProfile(context, options)
}
