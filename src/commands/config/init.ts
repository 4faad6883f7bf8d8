import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner } from '../../io/question.ts'

export const notes = [
  "It asks on a terminal. In a script use 'parley config set'. At the end it offers to check the profile, as 'parley config check' does. If the gateway streams, it offers to make every chat stream.",
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
    const { offerCheck } = await import('../../check.ts')
    await offerCheck(context, questioner)
  } finally {
    questioner.close()
  }
}
