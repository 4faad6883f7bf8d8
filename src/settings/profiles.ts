import { didYouMean } from '../argv/spelling.ts'
import type { Context, ProcessInfo } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { findOpenPlace, type ProfileFile, readProfiles, UnreadableProfiles } from './profile-file.ts'
import { type SettingName, settingNames, settingOf } from './table.ts'

export interface Profile {
  name: string
  values: Partial<Record<SettingName, unknown>>
  /** Chosen by `--profile`, so that the environment's addresses and secrets don't mix with it. */
  isNamed: boolean
  /** What chose it, such as `--profile` or `config use`. */
  chosenBy: string
  /** A file or folder that others can write and that the values came from: none of its commands is run. */
  openPlace?: string | undefined
}

/** The name of the profile that answers from the built-in emulator, and cannot be changed. */
export const demoName = 'demo'

/** The name of the profile that applies if none was chosen. */
export const defaultName = 'default'

const demo = {
  name: demoName,
  isNamed: true,
  values: {
    baseUrl: 'https://gateway.demo.invalid',
    accessToken: 'demo-access-token',
    agentsUrl: 'https://agents.demo.invalid',
    apiKey: 'demo-api-key',
    imageModel: 'alpha-image-demo',
  },
}

/**
 * Reads the profile that applies. The built-in one needs no file, so a broken file does not matter to it. For a run, which
 * takes values from anywhere, a file that may not be read counts as none, with a warning, if no profile was asked for: a
 * container may have the home folder of another user.
 */
export async function readProfile({ host, flags, note }: Context, isForRun = false): Promise<Profile> {
  const choice = { named: flags.profile, env: host.env }
  const asked = chooseName({}, choice)
  // Before the file is read, for that may change its mode.
  const openPlace = asked.name === demoName ? undefined : findOpenPlace(host)
  let file: ProfileFile = {}
  try {
    if (asked.name !== demoName) file = await readProfiles(host, note)
  } catch (error) {
    if (!isForRun || asked.isAsked || !(error instanceof UnreadableProfiles)) throw error
    note(`${error.message}; settings come from flags and the environment alone`)
  }
  // `--profile`, else `PARLEY_PROFILE`, else the file's current one, else `default`.
  const { name, chosenBy, isAsked } = chooseName(file, choice)
  if (name === demoName) return { ...demo, chosenBy }
  const values = profileValues(file, name)
  if (values === undefined && isAsked) throw noSuchProfile(file, name)
  return { name, chosenBy, values: values ?? {}, isNamed: choice.named !== undefined, openPlace }
}

/** The name of the profile that applies, whether it exists or not. */
export function chooseName(
  { current }: ProfileFile,
  { named, env }: { named: string | undefined; env: ProcessInfo['env'] },
): { name: string; chosenBy: string; isAsked: boolean } {
  if (named) return { name: named, chosenBy: '--profile', isAsked: true }
  if (env.PARLEY_PROFILE) return { name: env.PARLEY_PROFILE, chosenBy: 'PARLEY_PROFILE', isAsked: true }
  return { name: current || defaultName, chosenBy: current ? 'config use' : 'default', isAsked: false }
}

/** A profile's own values. Names that every object has (`constructor`) are not mistaken for profiles. */
export const profileValues = ({ profiles = {} }: ProfileFile, name: string) =>
  Object.hasOwn(profiles, name) ? profiles[name] : undefined

/** Every profile's name, the built-in one last. */
export const profileNames = ({ profiles = {} }: ProfileFile): string[] => [
  ...Object.keys(profiles).filter((name) => name !== demoName),
  demoName,
]

export function noSuchProfile(file: ProfileFile, name: string): CliError {
  const names = profileNames(file)
  const known = `there is ${names.join(', ')}`
  return new CliError('credentials', `there is no profile '${name}'${didYouMean(name, names)}: ${known}`)
}

export type Values = Record<string, unknown>

/** The settings that a value for this one replaces: a secret and the command that prints it exclude each other. */
export const replacedBy = (name: SettingName): string[] =>
  settingNames.filter((other) => settingOf(other).prints === name || settingOf(name).prints === other)

/** A profile's values with one more, and without those that it replaces. */
export function withValue(values: Values, name: SettingName, value: unknown): Values {
  const replaced = replacedBy(name)
  const kept = Object.entries(values).filter(([key]) => !replaced.includes(key))
  return { ...Object.fromEntries(kept), [name]: value }
}

/** Changes the profile file. Only this loads the code that writes it. */
export async function changeFile(
  { host, note }: Context,
  change: (file: ProfileFile) => ProfileFile | undefined,
): Promise<void> {
  const { changeProfiles } = await import('./profile-writer.ts')
  await changeProfiles(host, note, change)
}

/** Changes the values of a profile, by default of the chosen one; the first value creates it. Returns its name. */
export async function changeProfile(
  context: Context,
  change: (values: Values) => Values | undefined,
  named = context.flags.profile,
): Promise<string> {
  const { env } = context.host
  let name = ''
  await changeFile(context, (file) => {
    const chosen = chooseName(file, { named, env })
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
    const which = `the profile ${demoName}, chosen by ${chosenBy},`
    throw usageError(`${which} is built in and cannot be changed: --profile NAME chooses another`)
  }
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._@-]{0,63}$/u.test(name)) {
    throw usageError(
      'a profile name has at most 64 letters, digits and . _ @ -, and begins with a letter or a digit',
    )
  }
}
