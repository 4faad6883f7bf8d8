import { shellQuote } from '../../client/preview.ts'
import type { Context } from '../../context.ts'
import { escapeControls, oneLine } from '../../terminal/escape.ts'
import { createRawPrinter } from '../../terminal/raw-printer.ts'
import { toTsv } from '../../terminal/table.ts'
import { readText } from '../../wire/events.ts'
import type { EventItem } from '../../wire/events-page.ts'
import type { SessionState } from '../../wire/session-state.ts'
import { printIds, toRow } from './rows.ts'

/** A session's events on their way to a person or a pipe. */
export interface Feed {
  /** Prints what an agent says as text, any other event as one line, and with `--raw` each as one line of JSON. */
  print(item: EventItem): Promise<void>
  /** Says how the session came to rest; returns the exit code for it. */
  end(state: SessionState): Promise<number>
}

export function createFeed(context: Context, { ids, session }: { ids: boolean; session: string }): Feed {
  const { flags, output, note, tell, style } = context
  const raw = createRawPrinter(output)

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

  async function end({ rest, toolUse }: SessionState): Promise<number> {
    await output.flush()
    if (rest?.kind === 'waiting') {
      for (const id of rest.ids) {
        const use = toolUse(id)
        note(`${id} waits for an answer${use ? `: ${use.name} ${JSON.stringify(use.input ?? {})}` : ''}`)
      }
      note(`answer with: ${answerCommand(rest.ids)} --allow (or --deny)`)
      if (ids)
        await printIds(
          context,
          rest.ids.map((id) => ({ id })),
        )
      return 12
    }
    if (rest?.kind === 'stuck') {
      note(`the session has come to rest: ${rest.reason}`)
      return 13
    }
    return 0
  }

  /** So many ids that they would be cut are left to be asked for. */
  function answerCommand(ids: string[]): string {
    const profile = flags.profile === undefined ? '' : ` --profile ${shellQuote(flags.profile)}`
    const words = ids.map((id) => shellQuote(id)).join(' ')
    const which = words.length > 1000 || /(^| )-/.test(words) ? '--pending' : words
    return `parley events confirm${profile} -s ${shellQuote(session)} ${which}`
  }

  return { print, end }
}
