import { realTimers } from '../client/timer.ts'
import type { Context, Host, Progress, SharedFlags } from '../context.ts'
import { escapeJson, oneLine } from '../io/escape.ts'
import { redact } from '../io/failure.ts'
import { createInput } from '../io/input.ts'
import { createOutput } from '../io/output.ts'
import { createStyle, wantsColour } from '../io/style.ts'

/** Puts together what a command is handed. */
export async function createContext(host: Host, flags: SharedFlags, progress: Progress): Promise<Context> {
  const hide = (text: string) => redact(text, progress.secrets)
  const print = (line: string) => void host.stderr.open().write(`${hide(line)}\n`)
  const tell = (line: string) => {
    if (!flags.quiet) print(line)
  }
  const sign = (line: string) => `parley: ${oneLine(hide(line), 2000)}`
  const note = (line: string) => tell(sign(line))
  const warn = (line: string) => {
    print(flags.errors ? escapeJson(JSON.stringify({ warning: oneLine(hide(line), 2000) })) : sign(line))
  }
  return {
    host,
    flags,
    start: Date.now(),
    progress,
    note,
    warn,
    tell,
    timers: host.timers ?? realTimers,
    input: createInput({
      stdin: host.stdin,
      cwd: host.cwd,
      readsStdin: flags.stdin !== false,
      isForHeader: flags.header?.includes('@-') ?? false,
      note,
    }),
    output: createOutput(host.stdout),
    style: await createStyle(wantsColour(flags.color ?? 'auto', host.env, host.stderr.isTerminal)),
  }
}
