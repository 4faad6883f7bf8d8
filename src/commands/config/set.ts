import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { demoName, profilePath } from '../../settings/profiles.ts'
import { schemas } from '../../settings/schemas.ts'
import { settingOf } from '../../settings/table.ts'
import { findSetting } from './key.ts'

export function declare(command: Command): void {
  command
    .argument('<key>', 'a setting')
    .argument('[value]', 'its value; a secret is read from stdin instead')
    .addHelpText('after', '\nExample:\n  parley config set accessToken < token.txt\n')
}

export async function run({ host, flags, input }: Context, _: unknown, words: string[]): Promise<void> {
  const [key = '', given] = words
  const name = findSetting(key)
  if (settingOf(name).secret && given !== undefined) {
    throw usage(`${name} is a secret, and arguments stay in the shell's history: give it on stdin`)
  }
  const text = given ?? (await input.stdin(name)).trim()
  const parsed = schemas[name].safeParse(text)
  if (!parsed.success) throw usage(`${name} ${parsed.error.issues[0]?.message}`)
  const { changeProfiles } = await import('../../settings/save.ts')
  await changeProfiles(profilePath(host), (file) => {
    const profile = flags.profile || host.env.PARLEY_PROFILE || file.current || 'default'
    if (profile === demoName) throw usage(`the profile ${demoName} is built in and cannot be changed`)
    const profiles = file.profiles ?? {}
    return { ...file, profiles: { ...profiles, [profile]: { ...profiles[profile], [name]: parsed.data } } }
  })
}
