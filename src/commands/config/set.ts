import type { Command } from 'commander'
import { SettingArgument } from '../../argv/flags.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createQuestioner } from '../../io/question.ts'
import { changeProfile, replacedBy, withValue } from '../../settings/profiles.ts'
import { schemas } from '../../settings/schemas.ts'
import { findSetting, type SettingName, settingOf } from '../../settings/table.ts'

export function declare(command: Command): void {
  command
    .addArgument(new SettingArgument())
    .argument('[value]', 'its value; a secret is read from stdin or a hidden prompt')
}

export const examples = [
  'parley config set baseUrl https://gateway.example',
  "parley config set accessTokenCommand 'pass show gateway'",
  'parley config set accessToken < token.txt',
  'parley config set --profile work baseUrl https://work.example',
]

export async function run(context: Context, _: unknown, [key = '', given]: string[]): Promise<void> {
  // What follows may be a secret.
  if (key.includes('='))
    throw usage(
      'config set takes no =: KEY VALUE are two words, and a secret is read from stdin or a hidden prompt',
    )
  const name = findSetting(key)
  if (settingOf(name).secret && given !== undefined && given !== '-') {
    throw usage(
      `${name} is a secret, and as an argument it is in the shell's history now: 'parley config set ${name}' asks for it, or reads it from stdin`,
    )
  }
  context.calls.sayInstead(() => 'nothing was changed')
  const text = given === undefined || given === '-' ? await readValue(context, name) : given
  const parsed = schemas[name]().safeParse(text)
  if (!parsed.success) throw usage(`${name} ${parsed.error.issues[0]?.message}`)
  let replaced: string[] = []
  context.calls.sayInstead(() => undefined)
  await changeProfile(context, (values) => {
    replaced = replacedBy(name).filter((other) => Object.hasOwn(values, other))
    return withValue(values, name, parsed.data)
  })
  for (const other of replaced) context.note(`${other} was removed: ${name} replaces it`)
}

async function readValue({ host, input, cleanups }: Context, name: SettingName): Promise<string> {
  if (input.stdinKind !== 'terminal') return input.stdin(name)
  if (!settingOf(name).secret) throw usage(`${name} needs a value: parley config set ${name} VALUE`)
  const questioner = createQuestioner({ ...host, cleanups })
  try {
    return await questioner.ask(`${name} (not shown): `, { isHidden: true })
  } finally {
    questioner.close()
  }
}
