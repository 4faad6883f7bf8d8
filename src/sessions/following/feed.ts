import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { escapeControls, oneLine } from '../../io/escape.ts'
import type { StdStream } from '../../io/output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { toTsv } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/events/events-page.ts'
import { readText } from '../../wire/events/session-event.ts'
import { printIds, toRow } from '../listing/rows.ts'
import { goesOn, sessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import { describeStart, stillWaiting } from './rest-text.ts'

/** A session's events on their way to a person or a pipe. */
export interface Feed {
  /** Tells a person on a terminal what is followed, or why the session is idle. */
  begin(state: SessionState): void
  /** Prints what an agent says as text, any other event as one line, and with `--raw` each as one line of JSON. */
  print(item: EventItem): Promise<void>
  /** Prints, where ids were asked for, those of the tool uses that wait now and were not printed yet. */
  pause(state: SessionState): Promise<void>
  /** Throws a `CliError` where the session came to rest before its work was done (exit 12 or 13). */
  end(state: SessionState): Promise<void>
}

interface FeedOptions {
  session: string
  /** stdout is for the ids of the tool uses that wait. */
  ids?: boolean | undefined
  /** A rest is no end. */
  stays?: boolean | undefined
  /** What a signal takes nothing from. */
  certain?: string[] | undefined
}

export function createFeed(
  context: Context,
  { session, ids = false, stays = false, certain = [] }: FeedOptions,
): Feed {
  const { flags, host, output, note, tell, style } = context
  const raw = createRawPrinter(output)

  function begin(state: SessionState): void {
    context.whenInterrupted(() => {
      if (!stays || !state.rest) return [...certain, goesOn(context, session)].join('; ')
      return `the session is idle; to follow it again: ${sessionCommand(context, 'follow', session)}`
    })
    if (host.stderr.isTerminal) note(describeStart(state, { session, stays, now: context.timers.now() }))
  }

  async function print({ event, text }: EventItem): Promise<void> {
    if (flags.raw && !ids) {
      raw.add(`${text}\n`)
      return raw.write()
    }
    const said = event.type === 'agent.message' ? readText(event) : ''
    const row = toRow(event)
    if (ids) return tell(said === '' ? await asAside(row) : `— ${oneLine(said, 4000)}`)
    if (said !== '')
      return output.write(`${output.isTerminal ? escapeControls(said.replaceAll('\r\n', '\n')) : said}\n`)
    if (!output.isTerminal) return output.write(toTsv(row))
    return output.write(`${await asDimLine(`· ${row[1]} ${row[3]}`, host.stdout)}\n`)
  }

  /** An event on stderr, beside ids on stdout. */
  async function asAside([, ...row]: string[]): Promise<string> {
    if (host.stderr.isTerminal) return asDimLine(`— ${row[0]} ${row[2]}`, host.stderr)
    return `— ${row.map((cell) => oneLine(cell)).join(' ')}`
  }

  async function asDimLine(text: string, { columns }: StdStream): Promise<string> {
    const { clip } = await import('../../io/width.ts')
    return style.dim(clip(text, columns || 80))
  }

  const printed = new Set<string>()

  async function pause({ rest }: SessionState): Promise<void> {
    if (!ids || rest?.kind !== 'waiting') return
    const fresh = rest.ids.filter((id) => !printed.has(id))
    for (const id of fresh) printed.add(id)
    await printIds(
      context,
      fresh.map((id) => ({ id })),
    )
  }

  async function end({ rest, toolUse }: SessionState): Promise<void> {
    await output.flush()
    if (rest?.kind === 'waiting') {
      if (ids)
        await printIds(
          context,
          rest.ids.map((id) => ({ id })),
        )
      throw await stillWaiting(context, session, { ids: rest.ids, toolUse })
    }
    if (rest?.kind === 'stuck' || rest?.kind === 'ended')
      throw new CliError('stuck', `${session} stopped: ${rest.reason}`, { sent: 'yes' })
  }

  return { begin, print, pause, end }
}
