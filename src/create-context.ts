import type { Context, Host, Progress, SharedFlags } from './context.ts'
import { oneLine } from './terminal/escape.ts'
import { redact } from './terminal/failure.ts'
import { createInput } from './terminal/input.ts'
import { createOutput } from './terminal/output.ts'
import { createStyle, wantsColour } from './terminal/style.ts'

/** Puts together what a command is handed. */
export async function createContext(host: Host, flags: SharedFlags, progress: Progress): Promise<Context> {
  const hide = (text: string) => redact(text, progress.secrets)
  const tell = (line: string) => {
    if (!flags.quiet) host.stderr.write(`${hide(line)}\n`)
  }
  const note = (line: string) => tell(`parley: ${oneLine(hide(line), 2000)}`)
  return {
    host,
    flags,
    progress,
    note,
    tell,
    input: createInput({ stdin: host.stdin, cwd: host.cwd, readsStdin: flags.stdin !== false, note }),
    output: createOutput(host.stdout),
    style: await createStyle(wantsColour(flags.color ?? 'auto', host.env, host.stderr.isTTY === true)),
  }
}
