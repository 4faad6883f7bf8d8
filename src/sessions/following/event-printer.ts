import type { Context } from '../../context.ts'
import { escapeControls, oneLine } from '../../io/escape.ts'
import type { StdStream } from '../../io/output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { toTsv } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readText } from '../../wire/sessions/session-event.ts'
import { toRow } from '../listing/rows.ts'

/**
 * Prints events as they come: what an agent says as text, any other event as one line, and with `--raw` each as one
 * line of JSON. With `ids` they go to stderr, beside the ids on stdout.
 */
export function createEventPrinter(
  context: Context,
  { ids }: { ids: boolean },
): (item: EventItem) => Promise<void> {
  const { flags, host, output } = context
  const raw = createRawPrinter(output)
  return async (item) => {
    if (ids) return context.tell(await asAside(context, item))
    if (flags.raw) {
      raw.add(`${item.text}\n`)
      return raw.write()
    }
    const said = textOf(item)
    if (said !== '')
      return output.write(`${output.isTerminal ? escapeControls(said.replaceAll('\r\n', '\n')) : said}\n`)
    const row = toRow(item.event)
    if (!output.isTerminal) return output.write(toTsv(row))
    return output.write(`${await asDimLine(context, `· ${row[1]} ${row[3]}`, host.stdout)}\n`)
  }
}

const textOf = ({ event }: EventItem) => (event.type === 'agent.message' ? readText(event) : '')

async function asAside(context: Context, item: EventItem): Promise<string> {
  const said = textOf(item)
  if (said !== '') return `— ${oneLine(said, 4000)}`
  const [, type = '', time = '', text = ''] = toRow(item.event)
  const { stderr } = context.host
  if (stderr.isTerminal) return asDimLine(context, `— ${type} ${text}`, stderr)
  return `— ${[type, time, text].map((cell) => oneLine(cell)).join(' ')}`
}

async function asDimLine({ style }: Context, text: string, { columns }: StdStream): Promise<string> {
  const { clip } = await import('../../io/width.ts')
  return style.dim(clip(text, columns || 80))
}
