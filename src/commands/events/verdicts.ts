import { createInterface } from 'node:readline'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { oneLine } from '../../terminal/escape.ts'
import type { PendingUse } from './pending.ts'

export interface Verdict {
  id: string
  isAllowed: boolean
}

/** Asks a person about each tool use, showing what is known of it. Throws a usage error where there is no terminal. */
export async function askVerdicts({ input, host }: Context, pending: PendingUse[]): Promise<Verdict[]> {
  if (input.stdinKind !== 'terminal' || !host.stderr.isTerminal) {
    throw usage('say --allow or --deny: there is no terminal to ask on')
  }
  const stdin = host.stdin.open()
  try {
    return await ask(createInterface({ input: stdin })[Symbol.asyncIterator](), pending, (text) =>
      host.stderr.open().write(text),
    )
  } finally {
    stdin.destroy()
  }
}

async function ask(
  lines: AsyncIterator<string>,
  pending: PendingUse[],
  say: (text: string) => void,
): Promise<Verdict[]> {
  const verdicts: Verdict[] = []
  for (const { id, name, input } of pending) {
    const known = name === undefined ? '' : `: ${name} ${JSON.stringify(input ?? {})}`
    let answer = ''
    while (!/^(y|yes|n|no)$/i.test(answer)) {
      say(`${oneLine(id + known, 1000)}\n  allow? [y/n] `)
      const line = await lines.next()
      if (line.done) throw usage('no answer: nothing was sent')
      answer = line.value.trim()
    }
    verdicts.push({ id, isAllowed: /^y/i.test(answer) })
  }
  return verdicts
}
