import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import {
  chooseName,
  defaultName,
  demoName,
  type Profile,
  type ProfileFile,
  profileValues,
  readProfile as readChosen,
} from './profiles.ts'
import { type Explanation, explainSettings } from './resolve.ts'
import type { SettingName } from './table.ts'

export type Values = Record<string, unknown>

/** Reads the chosen profile, and finds out which values apply. */
export async function readProfile({
  host,
  flags,
  note,
}: Context): Promise<{ profile: Profile; explanations: Explanation[] }> {
  const profile = await readChosen(host, note, flags.profile)
  return { profile, explanations: explainSettings({ flags: flags.settings, profile, env: host.env }) }
}

/** Changes the profile file. Only this loads the code that writes it. */
export async function changeFile(
  { host, note }: Context,
  change: (file: ProfileFile) => ProfileFile | undefined,
): Promise<void> {
  const { changeProfiles } = await import('./save.ts')
  await changeProfiles(host, note, change)
}

/** Changes the values of the chosen profile; the first value creates it. Returns its name. */
export async function changeProfile(
  context: Context,
  change: (values: Values) => Values | undefined,
): Promise<string> {
  const { host, flags } = context
  let name = ''
  await changeFile(context, (file) => {
    const chosen = chooseName(file, { named: flags.profile, env: host.env })
    name = chosen.name
    requireOwnName(chosen)
    const values = change(profileValues(file, name) ?? {})
    return values && { ...file, profiles: { ...file.profiles, [name]: values } }
  })
  return name
}

/** Throws a usage error, which says what to do, for a name that no profile in the file can have. */
export function requireOwnName({ name, chosenBy }: { name: string; chosenBy: string }): void {
  if (name === demoName) {
    const way = waysOut.get(chosenBy) ?? 'name another'
    throw usage(`the profile ${demoName}, chosen by ${chosenBy}, is built in and cannot be changed: ${way}`)
  }
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._@-]{0,63}$/u.test(name)) {
    throw usage(
      'a profile name has at most 64 letters, digits and . _ @ -, and begins with a letter or a digit',
    )
  }
}

const waysOut = new Map([
  ['config use', `'parley config use ${defaultName}', or --profile NAME`],
  ['PARLEY_PROFILE', 'unset PARLEY_PROFILE, or --profile NAME'],
])

/** Says when the environment overrides a profile's value. */
export function noteOverride({ note }: Context, explanations: Explanation[], setting: SettingName): void {
  const explanation = explanations.find((each) =>
    [each.chosen, ...each.overridden].some((candidate) => candidate?.setting === setting),
  )
  if (explanation?.chosen?.origin.source === 'environment') {
    note(`${explanation.chosen.origin.name} in the environment overrides it`)
  }
}
