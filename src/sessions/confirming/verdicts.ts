import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner, type Questioner } from '../../io/question.ts'
import { startOf } from '../../wire/text-start.ts'
import type { PendingUse } from './pending.ts'
import { columnsOf, showWholeToolUse, visible } from './tool-use-text.ts'

export interface Verdict {
  id: string
  isAllowed: boolean
}

/** Asks a person, whenever there is something to decide. */
export interface Asker {
  /**
   * Asks about each tool use, showing all that is known of it. Throws a usage error where there is no terminal, or
   * where one of them cannot be shown whole.
   */
  ask(uses: PendingUse[]): Promise<Verdict[]>
  /** Releases the terminal. */
  close(): Promise<void>
}

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
      const verdicts: Verdict[] = []
      for (const [index, use] of uses.entries()) {
        host.stderr.open().write(`parley: tool use ${index + 1} of ${uses.length}:\n${texts[index]}`)
        const isAllowed = await input.inTime(ask(questioner, use, columns), 'a question was open')
        verdicts.push({ id: use.id, isAllowed })
      }
      return verdicts
    },
    close: async () => questioner?.close(),
  }
}

/** The same once. */
export async function askVerdicts(context: Context, pending: PendingUse[]): Promise<Verdict[]> {
  const asker = createAsker(context)
  try {
    return await asker.ask(pending)
  } finally {
    await asker.close()
  }
}

async function ask(questioner: Questioner, use: PendingUse, columns: number): Promise<boolean> {
  const question = `  allow ${briefly(use, columns)}? [y/n] `
  for (;;) {
    const answer = await questioner.ask(question, { isGrave: true })
    if (/^(y|yes|n|no)$/i.test(answer)) return /^y/i.test(answer)
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
