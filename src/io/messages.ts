import { escapeJson, oneLine } from './escape.ts'
import type { StdStream } from './output.ts'
import { createStyle, type Style } from './style.ts'
import { createLineWrapper } from './wrapping.ts'

/** Prints lines for the person on stderr, with secrets redacted. */
export interface Messages {
  /** Prints an escaped line with parley's name, unless `--quiet`. */
  note(line: string): void
  /**
   * Prints a line about a defect of the result or about safety, even with `--quiet`. With `--errors json`,
   * the line is JSON.
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

/**
 * Maximum length of a message before blanks are removed, in UTF-16 units. parley prints at most 2,000
 * characters.
 */
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
    // The footer contains text from the service. A CI system reads some texts at the start of a line as
    // commands, so the footer begins with a dash.
    printFooter: (text) => printLine(style.dim(wrap(redact(`— ${text}`)))),
    wrap,
    style,
  }
}
