import { suggestSpelling } from '../argv/spelling.ts'
import type { Context } from '../context.ts'
import { CliError, usageError } from '../errors.ts'
import { type ProfileFile, readProfileFile, UnreadableProfileFileError } from './profile-file.ts'
import { findSecretPair, isSecretSetting, type SettingName, settingNames } from './table.ts'

export interface Profile {
  name: string
  values: Partial<Record<SettingName, unknown>>
  /**
   * True if `--profile` names the profile. parley then ignores addresses and secrets from the environment.
   */
  isNamed: boolean
  /** Source of the name, such as `--profile` or `config use`. */
  chosenBy: string
}

/** The built-in profile uses the emulator and cannot be changed. */
export const demoProfileName = 'demo'

export const defaultProfileName = 'default'

const demo = {
  name: demoProfileName,
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
 * Registers the secrets of the profile for redaction. In a container, the profile file may belong to another
 * user, and flags and the environment may give all settings. So with `isForRun`, an unreadable file causes
 * only a note, unless the user requested a profile.
 */
export async function readProfile(context: Context, isForRun = false): Promise<Profile> {
  const { host, flags, messages, secrets } = context
  const requested = flags.profile || host.env.PARLEY_PROFILE
  let file: ProfileFile = {}
  try {
    if (requested !== demoProfileName) file = await readProfileFile(host, messages)
  } catch (error) {
    if (!isForRun || requested || !(error instanceof UnreadableProfileFileError)) throw error
    messages.note(`${error.message}; settings come from flags and the environment alone`)
  }
  const { name, chosenBy } = chooseProfileName(context, file)
  if (name === demoProfileName) return { ...demo, chosenBy }
  const values = findProfileValues(file, name)
  if (values === undefined && requested) throw createUnknownProfileError(file, name)
  for (const setting of settingNames.filter(isSecretSetting)) secrets.add(String(values?.[setting] ?? ''))
  return { name, chosenBy, values: values ?? {}, isNamed: flags.profile !== undefined }
}

/** Returns the name of the profile to use, even if no such profile exists. */
export function chooseProfileName(
  { flags, host: { env } }: Pick<Context, 'flags' | 'host'>,
  { current }: ProfileFile,
): { name: string; chosenBy: string } {
  if (flags.profile) return { name: flags.profile, chosenBy: '--profile' }
  if (env.PARLEY_PROFILE) return { name: env.PARLEY_PROFILE, chosenBy: 'PARLEY_PROFILE' }
  return { name: current || defaultProfileName, chosenBy: current ? 'config use' : 'default' }
}

/** Ignores inherited properties such as `constructor`, which are not profiles. */
export const findProfileValues = ({ profiles = {} }: ProfileFile, name: string) =>
  Object.hasOwn(profiles, name) ? profiles[name] : undefined

export const listProfileNames = ({ profiles = {} }: ProfileFile): string[] => [
  ...Object.keys(profiles).filter((name) => name !== demoProfileName),
  demoProfileName,
]

export function createUnknownProfileError(file: ProfileFile, name: string): CliError {
  const names = listProfileNames(file)
  const known = `the profiles are ${names.join(', ')}`
  const hint = `'parley config init --profile NAME' creates another`
  return new CliError(
    'credentials',
    `unknown profile '${name}'${suggestSpelling(name, names)}: ${known}. ${hint}`,
  )
}

export type ProfileValues = Record<string, unknown>

/** Removes the command of a new secret, or the secret of a new command. */
export function addProfileValue(values: ProfileValues, name: SettingName, value: unknown): ProfileValues {
  const replaced: readonly string[] = findSecretPair(name) ?? []
  const kept = Object.entries(values).filter(([key]) => !replaced.includes(key))
  return { ...Object.fromEntries(kept), [name]: value }
}

/** Loads the writer and conf only for a change, because loading them takes time. */
export async function changeProfileFile(
  context: Context,
  change: (file: ProfileFile) => ProfileFile | undefined,
): Promise<void> {
  const { rewriteProfileFile } = await import('./profile-writer.ts')
  await rewriteProfileFile(context, change)
}

/** Changes the chosen profile. Creates a missing profile. */
export async function changeProfile(
  context: Context,
  change: (values: ProfileValues) => ProfileValues | undefined,
): Promise<{ name: string; chosenBy: string; isNew: boolean }> {
  let changed = { name: '', chosenBy: '', isNew: false }
  await changeProfileFile(context, (file) => {
    const { name, chosenBy } = chooseProfileName(context, file)
    requireChangeableProfile(name)
    const before = findProfileValues(file, name)
    changed = { name, chosenBy, isNew: before === undefined }
    const values = change(before ?? {})
    return values && { ...file, profiles: { ...file.profiles, [name]: values } }
  })
  return changed
}

export function requireChangeableProfile(name: string): void {
  if (name === demoProfileName)
    throw usageError(
      `the profile ${name} is built in and cannot be changed, deleted or made current; --profile NAME uses a profile for one command`,
    )
  if (!/^[\p{L}\p{N}][\p{L}\p{N}._@-]{0,63}$/u.test(name)) {
    throw usageError(
      'a profile name has at most 64 letters, digits and . _ @ -, and begins with a letter or a digit',
    )
  }
}
