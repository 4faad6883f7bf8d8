import { shellQuote } from '../../client/preview.ts'
import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { escapeControls, oneLine } from '../../terminal/escape.ts'
import { createRawPrinter } from '../../terminal/raw-printer.ts'
import { toTsv } from '../../terminal/table.ts'
import { readText } from '../../wire/events.ts'
import type { EventItem } from '../../wire/events-page.ts'
import type { SessionState, ToolUse } from '../../wire/session-state.ts'
import { printIds, toRow } from './rows.ts'

/** A session's events on their way to a person or a pipe. */
export interface Feed {
  /** Tells a person on a terminal what is followed, or why the session is idle. */
  begin(state: SessionState): void
  /** Prints what an agent says as text, any other event as one line, and with `--raw` each as one line of JSON. */
  print(item: EventItem): Promise<void>
  /** Throws a `CliError` where the session came to rest before its work was done (`cli.md`, exit codes 12 and 13). */
  end(state: SessionState): Promise<void>
}

export function createFeed(
  context: Context,
  { ids = false, session }: { ids?: boolean | undefined; session: string },
): Feed {
  const { flags, host, output, note, tell, style } = context
  const raw = createRawPrinter(output)

  function begin({ rest, restingSince }: SessionState): void {
    if (!host.stderr.isTerminal) return
    const why = rest?.kind === 'waiting' ? 'tool uses wait for an answer' : rest?.reason
    const idle = `is idle${restingSince ? ` since ${restingSince}` : ''}: ${why}`
    note(rest ? `${session} ${idle}` : `following ${session}; Ctrl-C leaves it at work`)
  }

  async function print({ event, text }: EventItem): Promise<void> {
    if (flags.raw && !ids) {
      raw.add(`${text}\n`)
      return raw.write()
    }
    const isSpeech = event.type === 'agent.message'
    const said = readText(event)
    const row = toRow(event)
    if (ids)
      return tell(
        isSpeech
          ? `— ${oneLine(said, 4000)}`
          : `— ${row
              .slice(1)
              .map((cell) => oneLine(cell))
              .join(' ')}`,
      )
    if (isSpeech && said !== '')
      return output.write(`${output.isTerminal ? escapeControls(said.replaceAll('\r\n', '\n')) : said}\n`)
    const [id = '', type = '', , what = ''] = row
    return output.write(
      output.isTerminal ? `${style.dim(`· ${oneLine(`${type} ${what}`)} ${oneLine(id)}`)}\n` : toTsv(row),
    )
  }

  async function end({ rest, toolUse }: SessionState): Promise<void> {
    await output.flush()
    // How a session rests is no failure of the answer that was read last.
    delete context.progress.explain
    if (rest?.kind === 'waiting') {
      if (ids)
        await printIds(
          context,
          rest.ids.map((id) => ({ id })),
        )
      throw new CliError('waiting', `${session} waits for an answer`, {
        sent: 'yes',
        pending: rest.ids,
        problems: rest.ids.map((id) => describeUse(id, toolUse(id))),
        consequence: `answer with: ${answerCommand(rest.ids)} --allow (or --deny)`,
      })
    }
    if (rest?.kind === 'stuck' || rest?.kind === 'ended')
      throw new CliError('stuck', `${session} stopped: ${rest.reason}`, { sent: 'yes' })
  }

  /** So many ids that they would be cut are left to be asked for. */
  function answerCommand(ids: string[]): string {
    const profile = flags.profile === undefined ? '' : ` --profile ${shellQuote(flags.profile)}`
    const words = ids.map((id) => shellQuote(id)).join(' ')
    const which = words.length > 1000 || /(^| )-/.test(words) ? '--pending' : words
    return `parley events confirm${profile} -s ${shellQuote(session)} ${which}`
  }

  return { begin, print, end }
}

const describeUse = (id: string, use: ToolUse | undefined) =>
  use ? `${id}: ${use.name} ${JSON.stringify(use.input ?? {})}` : id
