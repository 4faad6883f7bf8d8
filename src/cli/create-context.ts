import type { Context, Host, RunContext, SharedFlags } from '../context.ts'
import { escapeJson, oneLine } from '../io/escape.ts'
import { Input } from '../io/input.ts'
import { createOutput } from '../io/output.ts'
import { createStyle } from '../io/style.ts'
import { createLineWrapper } from '../io/wrapping.ts'

/** How much of a message is read: the spaces of a line are joined, so more than is shown. In UTF-16 units. */
const longest = 64 * 1024

/** Makes the context of a command. */
export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const { redact } = run.secrets
  const { timers } = host
  const wrap = await createLineWrapper(host.stderr)
  const style = await createStyle(flags.color, host.env, host.stderr.isTerminal)
  const print = (line: string) => {
    host.stderr.open().write(`${line}\n`)
  }
  const say = (line: string) => print(wrap(redact(`parley: ${oneLine(redact(line, longest), 2000)}`)))
  const note = (line: string) => {
    if (!flags.quiet) say(line)
  }
  const warn = (line: string) => {
    if (flags.errors !== 'json') return say(line)
    print(escapeJson(JSON.stringify({ warning: oneLine(redact(line, longest), 2000) })))
  }
  const tell = (line: string) => {
    if (!flags.quiet) print(redact(line))
  }
  // A dash comes first: a CI system may take a line that a service's text begins for a command.
  const foot = (text: string) => tell(style.dim(wrap(redact(`— ${text}`))))
  const input = new Input({ host, flags, limit: run.limit, note })
  const output = createOutput(host.stdout, { limit: run.limit, timers })
  return {
    ...run,
    host,
    flags,
    note,
    warn,
    printLine: tell,
    printFooter: foot,
    timers,
    input,
    output,
    style,
    wrap,
  }
}
