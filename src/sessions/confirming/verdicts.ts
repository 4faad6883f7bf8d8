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

/**
 * Asks a person about each tool use, showing all that is known of it. Throws a usage error where there is no terminal,
 * or where one of them cannot be shown whole.
 */
export async function askVerdicts(
  { input, host, cleanups }: Context,
  pending: PendingUse[],
): Promise<Verdict[]> {
  if (input.stdinKind !== 'terminal' || !host.stderr.isTerminal) {
    throw usage('give --allow or --deny: there is no terminal to ask on')
  }
  const texts = pending.map((use) => showWholeToolUse(use, host.stderr.columns || 80))
  const questioner = createQuestioner({ ...host, cleanups })
  try {
    const verdicts: Verdict[] = []
    for (const [index, use] of pending.entries()) {
      host.stderr.open().write(`parley: tool use ${index + 1} of ${pending.length}:\n${texts[index]}`)
      verdicts.push({
        id: use.id,
        isAllowed: await input.inTime(ask(questioner, use), 'a question was open'),
      })
    }
    return verdicts
  } finally {
    await questioner.close()
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
