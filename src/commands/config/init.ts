import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner } from '../../io/question.ts'

export const notes = [
  "It asks on a terminal; in a script use config set. At the end it offers to try what it has got, as 'parley config check' does.",
]

export const examples = ['parley config init', 'parley config init --profile work']

export async function run(context: Context): Promise<void> {
  const { host, input, cleanups } = context
  if (input.stdinKind !== 'terminal') {
    throw usage("config init asks on a terminal, and stdin is not one: use 'parley config set'")
  }
  const { setUpProfile } = await import('../../settings/setup.ts')
  const questioner = createQuestioner({ ...host, cleanups })
  try {
    if (!(await setUpProfile(context, questioner))) return
    const { checkProfile, offerCheck } = await import('../../check.ts')
    const check = await offerCheck(context, questioner)
    // A command for a secret may ask something itself.
    await questioner.close()
    if (check) await checkProfile(context, check)
  } finally {
    await questioner.close()
  }
}
