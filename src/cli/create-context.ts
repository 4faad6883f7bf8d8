import type { Context, Host, RunContext, SharedFlags } from '../context.ts'
import { escapeJson, oneLine } from '../io/escape.ts'
import { Input } from '../io/input.ts'
import { createOutput } from '../io/output.ts'
import { createStyle } from '../io/style.ts'
import { createLineWrapper } from '../io/wrapping.ts'

/**
 * Maximum length of a message before its blanks are joined, in UTF-16 units. A printed message is shorter.
 */
const maxMessageLength = 64 * 1024

/** Creates the context of a command. */
export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const { redact } = run.secrets
  const { timers } = host
  const wrap = await createLineWrapper(host.stderr)
  const style = await createStyle(flags.color, host.env, host.stderr.isTerminal)
  const print = (line: string) => {
    host.stderr.open().write(`${line}\n`)
  }
  const printMessage = (line: string) =>
    print(wrap(redact(`parley: ${oneLine(redact(line, maxMessageLength), 2000)}`)))
  const note = (line: string) => {
    if (!flags.quiet) printMessage(line)
  }
  const warn = (line: string) => {
    if (flags.errors !== 'json') return printMessage(line)
    print(escapeJson(JSON.stringify({ warning: oneLine(redact(line, maxMessageLength), 2000) })))
  }
  const printLine = (line: string) => {
    if (!flags.quiet) print(redact(line))
  }
  // The dash keeps a CI system from reading a service's text at the start of a line as a command.
  const printFooter = (text: string) => printLine(style.dim(wrap(redact(`— ${text}`))))
  const input = new Input({ host, flags, deadline: run.deadline, note })
  const output = createOutput(host.stdout, run.deadline)
  return {
    ...run,
    host,
    flags,
    note,
    warn,
    printLine,
    printFooter,
    timers,
    input,
    output,
    style,
    wrap,
  }
}
