import type { Context } from '../../context.ts'
import { CliError, usage } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import { layOutJson } from '../../io/json-lines.ts'
import type { Span } from '../../io/markdown/canvas.ts'
import { createQuestioner, InputEnded, type Questioner } from '../../io/question.ts'
import { type Style, wantsColour } from '../../io/style.ts'
import { childrenOf, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import { DenyMessage, longestDenyMessage } from '../../wire/sessions/send-events.ts'
import { startOf } from '../../wire/text-start.ts'
import type { Decision } from '../policy/policy.ts'
import type { PendingUse } from './pending.ts'

/** Asks a person, whenever there is something to decide. */
export interface Asker {
  /**
   * Asks about each tool use, showing all that is known of it; returns the verdicts, by id. One that is left open has
   * none, and so have all from where the input ends (Ctrl-D), as after q. Throws a usage error if there is no terminal, or
   * if one of them cannot be shown whole. What else ends it before the last question, a signal too, says that the verdicts
   * before are lost.
   */
  ask(uses: readonly PendingUse[]): Promise<Map<string, Verdict>>
  /** Releases the terminal. */
  close(): Promise<void>
}

/** What a person says about a tool use. A reason is for the agent. */
export interface Verdict {
  decision: 'allow' | 'deny'
  reason?: string
}

/** Whether there is somebody to ask. */
export const canAsk = ({ input, host }: Context): boolean =>
  input.stdinKind === 'terminal' && host.stderr.isTerminal

/** Throws a usage error if there is nobody to ask. */
export function requirePerson(context: Context): void {
  if (!canAsk(context)) throw usage('give --allow or --deny: there is no terminal to ask on')
}

/** What was decided about a tool use, in a line for a person. */
export function describeDecision(
  style: Style,
  name: string,
  { decision, reason }: { decision: Decision; reason?: string | undefined },
): string {
  const tool = visible(oneLine(name, 60))
  if (decision === 'allow') return `${style.green('✓')} ${tool} allowed`
  const what =
    decision === 'deny' ? `${style.red('✗')} ${tool} denied` : `${style.dim('·')} ${tool} stays open`
  return reason === undefined ? what : `${what}: ${oneLine(reason, 200)}`
}

/** `look` is the command that shows the session. */
export function createAsker(context: Context, look: string): Asker {
  const { input, host, calls, cleanups, flags, style, wrap: breakMessage } = context
  let questioner: Questioner | undefined
  const print = (text: string) => void host.stderr.open().write(text)
  const columns = () => host.stderr.columns || 80
  const explain = () => print(`${breakMessage(legend)}\n`)

  async function ask(use: PendingUse): Promise<Verdict | 'open' | 'quit'> {
    questioner ??= createQuestioner({ ...host, cleanups })
    const question = `  allow ${style.bold(briefly(use, columns()))}? ${keys} `
    for (;;) {
      const said = await questioner.ask(question).then(readVerdict, quitAtEnd)
      if (said !== undefined && said !== 'too long') return said
      if (said === undefined) explain()
      else print(`${breakMessage(`  the reason has more than ${longestDenyMessage} characters`)}\n`)
    }
  }

  return {
    async ask(uses) {
      requirePerson(context)
      const { paint } = await import('../../io/markdown/canvas.ts')
      const isColoured = wantsColour(flags.color ?? 'auto', host.env, host.stderr.isTerminal)
      const show = (use: PendingUse) => {
        try {
          return showWholeToolUse(use, columns(), (row) => paint(row, isColoured))
        } catch (error) {
          const consequence = `look at it with '${look} --raw', then answer by its id with --allow or --deny`
          throw error instanceof CliError ? error.with({ consequence }) : error
        }
      }
      // Nothing is asked if one of them cannot be shown.
      for (const use of uses) show(use)
      const verdicts = new Map<string, Verdict>()
      const askAll = async () => {
        for (const [index, use] of uses.entries()) {
          print(`parley: tool use ${index + 1} of ${uses.length}:\n${show(use)}`)
          if (!questioner) explain()
          const said = await input.inTime(ask(use), 'a question was open')
          if (said === 'quit') return
          if (said !== 'open') verdicts.set(use.id, said)
        }
      }
      const lost = () => describeLost(verdicts.size, uses.length)
      try {
        await calls.sayFirst(lost, askAll)
      } catch (error) {
        // What is said next does not begin beside a question that is open.
        questioner?.close()
        const words = lost()
        if (!(error instanceof CliError) || words === undefined) throw error
        throw new CliError(error.kind, `${error.message}; ${words}`, error.details)
      }
      return verdicts
    },
    close: async () => questioner?.close(),
  }
}

function quitAtEnd(error: unknown): 'quit' {
  if (error instanceof InputEnded) return 'quit'
  throw error
}

const keys = '[y/n/s/q]'

const legend = '  y allow, n deny, n REASON deny and say why, s leave it open, q stop and send'

/** What a person said and nobody was told. */
const describeLost = (given: number, all: number): string | undefined =>
  given === 0 ? undefined : `your answer to ${given} of ${all} tool uses is lost`

/** `undefined` for what is not an answer. */
function readVerdict(typed: string): Verdict | 'open' | 'quit' | 'too long' | undefined {
  const [, word = '', reason = ''] = /^(\S+)\s*(.*)$/s.exec(typed) ?? []
  if (/^no?$/i.test(word)) {
    if (!DenyMessage().safeParse(reason).success) return 'too long'
    return reason === '' ? { decision: 'deny' } : { decision: 'deny', reason }
  }
  if (reason !== '') return undefined
  if (/^(y|yes)$/i.test(word)) return { decision: 'allow' }
  if (/^(s|skip)$/i.test(word)) return 'open'
  return /^(q|quit)$/i.test(word) ? 'quit' : undefined
}

/**
 * A tool use in a question, which it was shown whole before. A terminal that wrapped the question would begin a line
 * with the service's text.
 */
function briefly({ id, name }: PendingUse, columns: number): string {
  const room = columns - `  allow  ()? ${keys} yes`.length
  // Both need room for a character and the sign that something is left out.
  if (room < 8) return 'it'
  if (name === undefined) return brief(id, room)
  const shownId = brief(id, room >> 1)
  return `${brief(name, room - columnsOf(shownId))} (${shownId})`
}

function brief(text: string, room: number): string {
  const whole = visible(startOf(text, 60))
  if (text.length <= 60 && columnsOf(whole) <= room) return whole
  let shown = ''
  let left = room - columnsOf('…')
  for (const char of whole) {
    left -= columnsOf(char)
    if (left < 0) break
    shown += char
  }
  return `${shown}…`
}

/** In characters. */
const longest = 2 ** 20

const deepest = 100

/**
 * All that is known about a tool use, for a person who decides on it. Nothing is cut or hidden, not even a key that is
 * there twice. Every line begins with a mark, even if a terminal of `columns` would have wrapped it, so that no text
 * can look like parley's own. Throws a usage error for what is too long or too deep for that.
 */
function showWholeToolUse({ id, text }: PendingUse, columns: number, paint: (row: Span[]) => string): string {
  const width = Math.max(columns - mark.length - 1, 20)
  let shown = ''
  let size = 0
  const show = (line: readonly Span[]) => {
    const spans = line.map((span) => ({ ...span, text: visible(span.text) }))
    size += spans.reduce((sum, span) => sum + span.text.length, 0)
    if (size > longest) throw tooLong()
    for (const row of wrap(spans, width)) shown += `${mark}${paint(row)}\n`
  }
  show([{ text: `id: ${id}`, look: '' }])
  if (text === undefined) show([{ text: 'nothing more is known about it', look: '' }])
  else showEvent(text, show)
  return shown
}

const mark = '  | '

const bold = '1'

function showEvent(event: string, show: (line: readonly Span[]) => void): void {
  const fields = [...childrenOf(event, skipBlanks(event, 0))]
  const spelled = (key: string) =>
    fields.filter(({ name }) => name === key).map(({ start, end }) => event.slice(start, end))
  const showTexts = (label: string, key: string) => {
    for (const value of spelled(key).map((json) => JSON.parse(json)))
      if (typeof value === 'string')
        show([
          { text: label, look: '' },
          { text: value, look: bold },
        ])
  }
  showTexts('MCP server: ', 'mcp_server_name')
  showTexts('tool: ', 'name')
  for (const json of spelled('input')) {
    if (isDeeperThan(json, deepest)) throw unshown(`nested more than ${deepest} deep`)
    layOutJson(json, (line) => breakTexts(line).forEach(show))
  }
}

/** A new line in a text is one here too, after its `\n`. */
function breakTexts(line: readonly Span[]): Span[][] {
  const [lead] = line
  const indent = { text: `${/^ */.exec(lead?.text ?? '')?.[0]}    `, look: '' }
  const lines: Span[][] = [[]]
  for (const span of line) {
    const parts = span.text.replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `${found}\n` : found))
    for (const [index, text] of parts.split('\n').entries()) {
      if (index > 0) lines.push([indent])
      lines.at(-1)?.push({ ...span, text })
    }
  }
  return lines
}

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Text whose invisible characters, and those that move others, are escaped as in JSON. */
const visible = (text: string): string =>
  text.replace(unseen, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** At most so many: a character beyond ASCII may be two wide. Rather a line too short than one that the terminal wraps. */
const columnsOf = (text: string): number => [...text].reduce((sum, char) => sum + (char < '\x7f' ? 1 : 2), 0)

function wrap(line: readonly Span[], width: number): Span[][] {
  const rows: Span[][] = [[]]
  let room = width
  for (const { text, look } of line) {
    let from = 0
    let at = 0
    const put = () => rows.at(-1)?.push({ text: text.slice(from, at), look })
    for (const char of text) {
      room -= columnsOf(char)
      if (room < 0) {
        put()
        rows.push([])
        from = at
        room = width - columnsOf(char)
      }
      at += char.length
    }
    put()
  }
  return rows
}

const tooLong = () => unshown('longer than 1 MiB')

const unshown = (why: string) => usage(`a tool use that waits is ${why}, so it cannot be shown whole`)
