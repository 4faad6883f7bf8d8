import type { Argument, Option } from 'commander'
import { FileFlag, SettingArgument, TextFlag } from '../../argv/flags.ts'
import { schemas } from '../../settings/schemas.ts'
import { flagOf, settingNames, settings } from '../../settings/table.ts'
import { documentedModels } from '../../wire/gateway/models.ts'
import { betas } from '../../wire/sessions/betas.ts'
import { eventTypes } from '../../wire/sessions/event-types.ts'

/** What completion offers for a value: words, names of files, `@` and a file's name, or names of profiles. */
export type Answer = readonly string[] | 'files' | 'texts' | 'profiles'

/** Values that are no flag's only ones, by the flag, or by the command with its flag or argument. */
export const known = new Map<string, Answer>([
  ['--profile', 'profiles'],
  ['config use name', 'profiles'],
  ['config delete name', 'profiles'],
  ['chat --model', documentedModels.map((name) => name.replace('{family}', settings.family.default))],
  ['--beta', betas],
  ['--betas', betas],
  ['events list --type', eventTypes],
  ['api service', ['gateway', 'agents']],
])

/** What a flag's value can be; `path` is the words of its command. */
export function answerToFlag(option: Option, path: string): Answer | undefined {
  const { long, flags, argChoices } = option
  const given = argChoices ?? known.get(`${path} ${long}`) ?? known.get(long ?? '') ?? choicesOf(long)
  if (given) return given
  if (option instanceof FileFlag) return 'files'
  return option instanceof TextFlag && !flags.includes('=') ? 'texts' : undefined
}

export function answerToArgument(argument: Argument, path: string): Answer | undefined {
  if (argument instanceof SettingArgument) return settingNames
  return argument.argChoices ?? known.get(`${path} ${argument.name()}`)
}

/** The only values that a setting can have, where its flag is this one. */
function choicesOf(flag: string | undefined): string[] | undefined {
  const name = settingNames.find((each) => flagOf(each) === flag)
  const { def } = name ? schemas[name]()._zod : {}
  return def && 'entries' in def ? Object.values(def.entries as Record<string, string>) : undefined
}
