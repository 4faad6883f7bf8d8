import type { BasicContext } from '../basic-context.ts'
import { escapeControlsInJson, toOneLine } from './escape.ts'
import { formatGithubAnnotation } from './failure.ts'
import { createStyle } from './style.ts'
import { createLineWrapper } from './wrapping.ts'

export type MessagePrinter = Awaited<ReturnType<typeof createMessagePrinter>>

/**
 * parley cuts a message to this number of UTF-16 units while it redacts the message, because redacting takes
 * time. `toOneLine` then keeps at most 2,000 characters.
 */
const maxMessageLength = 64 * 1024

export async function createMessagePrinter({ host, flags, secrets }: BasicContext) {
  const { stderr, env } = host
  const { redact } = secrets
  const wrap = await createLineWrapper(stderr)
  const style = await createStyle(flags.color, env, stderr.isTerminal)
  let held: string[] | undefined
  const print = (line: string) => {
    if (held) held.push(line)
    else stderr.open().write(`${line}\n`)
  }
  const shorten = (message: string) => toOneLine(redact(message, maxMessageLength), 2000)
  const printMessage = (line: string) => print(wrap(redact(`parley: ${shorten(line)}`)))
  /** Prints a line that is already escaped. No effect with `--quiet`. */
  const printLine = (line: string): void => {
    if (!flags.quiet) print(redact(line))
  }
  return {
    /** Prints a line with parley's name. No effect with `--quiet`. */
    note(line: string): void {
      if (!flags.quiet) printMessage(line)
    },
    /** Warns of an incorrect result or a risk, even with `--quiet`. With `--errors json`, the line is JSON. */
    warn(line: string): void {
      if (flags.errors === 'json') print(escapeControlsInJson(JSON.stringify({ warning: shorten(line) })))
      else printMessage(line)
      host.printAnnotation?.(formatGithubAnnotation('warning', 'parley', shorten(line)))
    },
    printLine,
    // The footer contains text from the service. A CI system reads some line starts as commands, so each
    // footer begins with a dash.
    printFooter: (text: string): void => printLine(style.dim(wrap(redact(`— ${text}`)))),
    /** Holds back all lines until `release`, so that an open question stays readable. */
    hold(): void {
      held ??= []
    },
    release(): void {
      const lines = held ?? []
      held = undefined
      for (const line of lines) print(line)
    },
    get isHeld(): boolean {
      return held !== undefined
    },
    wrap,
    style,
  }
}
