import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner, type Questioner } from '../../io/question.ts'
import { childrenOf, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import { startOf } from '../../wire/text-start.ts'
import type { PendingUse } from './pending.ts'

/** Asks a person, whenever there is something to decide. */
export interface Asker {
  /**
   * Asks about each tool use, showing all that is known of it; returns the verdicts, by id. Throws a usage error if there
   * is no terminal, or if one of them cannot be shown whole.
   */
  ask(uses: readonly PendingUse[]): Promise<Map<string, Verdict>>
  /** Releases the terminal. */
  close(): Promise<void>
}

/** What a person says about a tool use. */
export type Verdict = 'allow' | 'deny'

/** Whether there is somebody to ask. */
export const canAsk = ({ input, host }: Context): boolean =>
  input.stdinKind === 'terminal' && host.stderr.isTerminal

export function createAsker(context: Context): Asker {
  const { input, host, cleanups } = context
  let questioner: Questioner | undefined
  return {
    async ask(uses) {
      if (!canAsk(context)) throw usage('give --allow or --deny: there is no terminal to ask on')
      const columns = host.stderr.columns || 80
      const texts = uses.map((use) => showWholeToolUse(use, columns))
      questioner ??= createQuestioner({ ...host, cleanups })
      const verdicts = new Map<string, Verdict>()
      for (const [index, use] of uses.entries()) {
        host.stderr.open().write(`parley: tool use ${index + 1} of ${uses.length}:\n${texts[index]}`)
        verdicts.set(use.id, await input.inTime(ask(questioner, use, columns), 'a question was open'))
      }
      return verdicts
    },
    close: async () => questioner?.close(),
  }
}

async function ask(questioner: Questioner, use: PendingUse, columns: number): Promise<Verdict> {
  const question = `  allow ${briefly(use, columns)}? [y/n] `
  for (;;) {
    const typed = await questioner.ask(question, { isGrave: true })
    if (/^(y|yes|n|no)$/i.test(typed)) return /^y/i.test(typed) ? 'allow' : 'deny'
  }
}

/**
 * A tool use in a question, which it was shown whole before. A terminal that wrapped the question would begin a line
 * with the service's text.
 */
function briefly({ id, name }: PendingUse, columns: number): string {
  const room = columns - '  allow  ()? [y/n] yes'.length
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
function showWholeToolUse({ id, text }: PendingUse, columns: number): string {
  const lines = [
    `id: ${visible(id)}`,
    ...(text === undefined ? ['nothing more is known about it'] : describeEvent(text)),
  ]
  if (sumOf(lines) > longest) throw tooLong()
  const width = Math.max(columns - mark.length - 1, 20)
  return lines.flatMap((line) => wrap(line, width)).join('')
}

const mark = '  | '

const sumOf = (texts: string[]) => texts.reduce((sum, text) => sum + text.length, 0)

function describeEvent(event: string): string[] {
  const fields = [...childrenOf(event, skipBlanks(event, 0))]
  const spelled = (key: string) =>
    fields.filter(({ name }) => name === key).map(({ start, end }) => event.slice(start, end))
  const texts = (key: string) =>
    spelled(key)
      .map((json) => JSON.parse(json))
      .filter((value) => typeof value === 'string')
      .map(visible)
  const inputs = spelled('input')
  if (sumOf(inputs) > longest) throw tooLong()
  return [
    ...texts('mcp_server_name').map((server) => `MCP server: ${server}`),
    ...texts('name').map((name) => `tool: ${name}`),
    ...inputs.flatMap(showJson),
  ]
}

/** Indented. A new line in a text is one here too, after its `\n`. */
function showJson(json: string): string[] {
  if (isDeeperThan(json, deepest)) throw unshown(`nested more than ${deepest} deep`)
  return layOut(json, '')
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(line.search(/\S/) + 4)
      const broken = line.replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `\\n\n${indent}` : found))
      return broken.split('\n').map(visible)
    })
}

/** Numbers and repeated keys as they are spelled; texts without escapes that are not needed. */
function layOut(json: string, indent: string): string {
  const [opening = ''] = json
  if (opening === '"') return JSON.stringify(JSON.parse(json))
  if (opening !== '{' && opening !== '[') return json
  const inner = `${indent}  `
  const children = [...childrenOf(json, 0)].map(({ name, start, end }) => {
    const key = name === undefined ? '' : `${JSON.stringify(name)}: `
    return inner + key + layOut(json.slice(start, end), inner)
  })
  const closing = opening === '{' ? '}' : ']'
  if (children.length === 0) return opening + closing
  return `${opening}\n${children.join(',\n')}\n${indent}${closing}`
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

function wrap(line: string, width: number): string[] {
  const rows: string[] = []
  let row = ''
  let room = width
  for (const char of line) {
    room -= columnsOf(char)
    if (room < 0) {
      rows.push(row)
      row = ''
      room = width - columnsOf(char)
    }
    row += char
  }
  return [...rows, row].map((each) => `${mark}${each}\n`)
}

const tooLong = () => unshown('longer than 1 MiB')

const unshown = (why: string) =>
  usage(
    `a tool use that waits is ${why}, so it cannot be shown whole: look at it with 'parley events list --raw', then answer by its id with --allow or --deny`,
  )
