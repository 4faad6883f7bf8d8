import type { Context } from '../../context.ts'

export const notes = ['It asks on a terminal; in a script use config set. Nothing is sent anywhere.']

export const examples = ['parley config init', 'parley config init --profile work']

export async function run(context: Context): Promise<void> {
  const { setUpProfile } = await import('../../settings/setup.ts')
  return setUpProfile(context)
}
