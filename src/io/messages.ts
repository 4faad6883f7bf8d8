import { escapeJson, oneLine } from './escape.ts'
import type { StdStream } from './output.ts'
import { createStyle, type Style } from './style.ts'
import { createLineWrapper } from './wrapping.ts'

/** Prints lines for the person on stderr, with secrets redacted. */
export interface Messages {
  /** Prints an escaped line with parley's name, unless `--quiet`. */
  note(line: string): void
  /**
   * Like `note`, for lines that matter to the result or to safety. They are printed with `--quiet`, too, and
   * with `--errors json` as a JSON line.
   */
  warn(line: string): void
  /** Prints a line that needs no escaping, unless `--quiet`. */
  printLine(line: string): void
  /** Like `printLine`, for the wrapped footer of a run. */
  printFooter(text: string): void
  /** Wraps a message if stderr is a terminal. */
  wrap(message: string): string
  style: Style
}

interface MessageOptions {
  host: { stderr: StdStream; env: Readonly<Record<string, string | undefined>> }
  flags: { quiet?: boolean; errors?: 'json' | 'github'; color?: string }
  redact(text: string, maxLength?: number): string
}

/** Maximum length of a message before blanks are removed, in UTF-16 units. A printed message is shorter. */
const maxMessageLength = 64 * 1024

export async function createMessages({ host, flags, redact }: MessageOptions): Promise<Messages> {
  const { stderr, env } = host
  const wrap = await createLineWrapper(stderr)
  const style = await createStyle(flags.color, env, stderr.isTerminal)
  const print = (line: string) => {
    stderr.open().write(`${line}\n`)
  }
  const toOneLine = (message: string) => oneLine(redact(message, maxMessageLength), 2000)
  const printMessage = (line: string) => print(wrap(redact(`parley: ${toOneLine(line)}`)))
  const printLine = (line: string) => {
    if (!flags.quiet) print(redact(line))
  }
  return {
    note(line) {
      if (!flags.quiet) printMessage(line)
    },
    warn(line) {
      if (flags.errors === 'json') print(escapeJson(JSON.stringify({ warning: toOneLine(line) })))
      else printMessage(line)
    },
    printLine,
    // The dash keeps a CI system from reading a service's text at the start of a line as a command.
    printFooter: (text) => printLine(style.dim(wrap(redact(`— ${text}`)))),
    wrap,
    style,
  }
}
