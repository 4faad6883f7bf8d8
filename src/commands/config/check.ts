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
    .option('-s, --session <id>', 'a session to try the key with (environment PARLEY_SESSION)')
}

export const notes = [
  'It prints one line for each service: ok, failed, or not tried, and why. It asks the session service for one event of the session that -s names; that session need not exist. Without -s it asks for one session. It asks the gateway only with --ask, or after a yes on a terminal: one short chat, and one that streams. The exit code is 0 if nothing failed, else that of the first failure. A service may be silent for 30 s, or as long as --timeout says. --raw, --dry-run and --curl do not apply.',
]

export const examples = ['parley config check', 'parley config check -s sesn_1 --ask']

export async function run(context: Context, options: CheckFlags): Promise<void> {
  const { flags } = context
  if (flags.retryUnknown) throw usage('--retry-unknown works only with chat, image and api')
  const { checkProfile } = await import('../../check.ts')
  await checkProfile(context, options)
}
