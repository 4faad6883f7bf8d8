import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner, type Questioner } from '../../io/question.ts'
import { startOf } from '../../wire/text-start.ts'
import type { PendingUse } from './pending.ts'
import { showWholeToolUse, visible } from './tool-use-text.ts'

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
      const texts = uses.map((use) => showWholeToolUse(use, host.stderr.columns || 80))
      questioner ??= createQuestioner({ ...host, cleanups })
      const verdicts: Verdict[] = []
      for (const [index, use] of uses.entries()) {
        host.stderr.open().write(`parley: tool use ${index + 1} of ${uses.length}:\n${texts[index]}`)
        const isAllowed = await input.inTime(ask(questioner, use), 'a question was open')
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

async function ask(questioner: Questioner, { id, name }: PendingUse): Promise<boolean> {
  const what = name === undefined ? brief(id) : `${brief(name)} (${brief(id)})`
  for (;;) {
    const answer = await questioner.ask(`  allow ${what}? [y/n] `, { isGrave: true })
    if (/^(y|yes|n|no)$/i.test(answer)) return /^y/i.test(answer)
  }
}

/** It was shown whole above. */
const brief = (text: string): string => visible(text.length > 60 ? `${startOf(text, 59)}…` : text)
