import type { Context } from '../context.ts'
import { shellQuote } from '../io/shell-quote.ts'

/** A command for the same session that a person can paste; arguments of its own may be added. */
export function sessionCommand(
  { flags }: Pick<Context, 'flags'>,
  verb: 'confirm' | 'follow' | 'run',
  session: string,
): string {
  const address = flags.settings.agentsUrl?.value
  const profile = flags.profile === undefined ? '' : ` --profile ${shellQuote(flags.profile)}`
  const place = address === undefined ? '' : ` --agents-url ${shellQuote(String(address))}`
  // Commander takes a separate value that begins with a hyphen for a flag.
  const name = session.startsWith('-') ? `--session=${shellQuote(session)}` : `-s ${shellQuote(session)}`
  return `parley events ${verb}${profile}${place} ${name}`
}

/** What becomes of a session that is no longer followed. */
export const goesOn = (context: Pick<Context, 'flags'>, session: string): string =>
  `the session goes on; to follow it again: ${sessionCommand(context, 'follow', session)}`
