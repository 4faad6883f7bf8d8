import type { Context } from '../../context.ts'
import { escapeControls, escapeJson, oneLine } from '../../io/escape.ts'
import { layOutPage } from '../../io/json-lines.ts'
import { toLocalTime } from '../../io/local-time.ts'
import { paint, type Span } from '../../io/spans.ts'
import { wantsColour } from '../../io/style.ts'
import { isObject } from '../../wire/json/parse.ts'
import { childrenOf, skipBlanks } from '../../wire/json/scanner.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readText } from '../../wire/sessions/session-event.ts'

/** Prints events whole on a terminal, one below the other: a head, then the text, then all else that each of them has. */
export async function printWholeEvents(
  { output, flags, host }: Context,
  items: readonly EventItem[],
): Promise<void> {
  const isColoured = wantsColour(flags.color ?? 'auto', host.env, true)
  const pages = items.map((item) => describeWhole(item, (line) => paint(line, isColoured)))
  await output.write(pages.join('\n'))
}

function describeWhole({ event, text }: EventItem, toText: (line: readonly Span[]) => string): string {
  const { id = '', type, processed_at: timestamp } = event
  const moment = timestamp ? toLocalTime(timestamp) : undefined
  const time = moment ? `${moment.date} ${moment.time} (${moment.zone})` : (timestamp ?? '')
  const others = [oneLine(type), oneLine(time)].filter((word) => word !== '').join('  ')
  const head =
    id === ''
      ? []
      : [
          { text: oneLine(id, longestId), look: bold },
          { text: '  ', look: '' },
        ]
  const lines = [toText([...head, { text: others, look: '' }])]
  const said = isPlainText(event.content) ? readText(event) : ''
  if (said !== '') lines.push(escapeControls(said.replaceAll('\r\n', '\n')).trimEnd())
  for (const { name = '', start, end } of childrenOf(text, skipBlanks(text, 0))) {
    if (heading.has(name) || (name === 'content' && said !== '')) continue
    const json = text.slice(start, end)
    const label = toText([{ text: `${oneLine(name)}: `, look: dim }])
    lines.push(label + (layOutPage(json, toText)?.trimEnd() ?? escapeJson(json)))
  }
  return `${lines.join('\n')}\n`
}

/** Whether a content says no more than its text. */
const isPlainText = (content: unknown): boolean =>
  typeof content === 'string' ||
  (Array.isArray(content) &&
    content.every(
      (block) =>
        isObject(block) &&
        block.type === 'text' &&
        typeof block.text === 'string' &&
        Object.keys(block).length === 2,
    ))

const bold = '1'
const dim = '2'

const longestId = 1024

/** The fields of the first line. */
const heading = new Set(['id', 'type', 'processed_at'])
