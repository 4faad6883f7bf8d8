import { didYouMean } from '../argv/spelling.ts'
import type { ProcessInfo } from '../context.ts'
import { CliError, fileProblem } from '../errors.ts'
import { describeJsonError, formatPath } from '../wire/json/parse.ts'
import * as z from '../wire/zod.ts'
import { profilePath } from './folder.ts'
import { readProtected, type Warn } from './protection.ts'
import type { SettingName } from './table.ts'

/** The profile file. Fields that another version of parley added are kept. */
const ProfileFile = z.lazily(() =>
  z.looseObject({
    version: z.optional(z.unknown()),
    current: z.optional(z.string()),
    profiles: z.optional(z.record(z.string(), z.record(z.string(), z.unknown()))),
  }),
)
export type ProfileFile = z.infer<ReturnType<typeof ProfileFile>>

export interface Profile {
  name: string
  values: Partial<Record<SettingName, unknown>>
  /** Chosen by `--profile`, so that the environment's addresses and secrets don't mix with it. */
  isNamed: boolean
  /** What chose it, such as `--profile` or `config use`. */
  chosenBy: string
}

/** The name of the profile that answers from the built-in emulator, and cannot be changed. */
export const demoName = 'demo'

/** The name of the profile that applies where none was chosen. */
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

/** Reads the profile file; a file that is not there is an empty one. Throws a `CliError` that never quotes it. */
export async function readProfiles(info: ProcessInfo, warn: Warn): Promise<ProfileFile> {
  const path = profilePath(info)
  if (path === undefined) return {}
  let bytes: Uint8Array | undefined
  try {
    bytes = readProtected(path, info, warn)
  } catch (error) {
    if (error instanceof CliError) throw error
    throw new CliError('credentials', `${path}: ${fileProblem(error)}`)
  }
  return bytes === undefined ? {} : parseProfiles(bytes, path)
}

/** Returns the parsed JSON, not zod's copy of it, which would lack a key such as `__proto__`. */
async function parseProfiles(bytes: Uint8Array, path: string): Promise<ProfileFile> {
  const broken = (why: string) => new CliError('credentials', `${path}: ${why}`)
  let text = ''
  let content: unknown
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    content = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw broken('not UTF-8 text')
    throw broken(`not valid JSON: ${await describeJsonError(text)}`)
  }
  const issue = ProfileFile().safeParse(content).error?.issues[0]
  if (issue) throw broken(`${formatPath(issue.path) || 'the whole'}: ${issue.message}`)
  return content as ProfileFile
}

/** Reads the profile that applies. The built-in one needs no file, so a broken file does not matter to it. */
export async function readProfile(
  info: ProcessInfo,
  warn: Warn,
  named: string | undefined,
): Promise<Profile> {
  const choice = { named, env: info.env }
  const isBuiltIn = chooseName({}, choice).name === demoName
  return chooseProfile(isBuiltIn ? {} : await readProfiles(info, warn), choice)
}

/** Chooses the profile: `--profile`, else `PARLEY_PROFILE`, else the file's current one, else `default`. */
function chooseProfile(
  file: ProfileFile,
  { named, env }: { named: string | undefined; env: ProcessInfo['env'] },
): Profile {
  const { name, chosenBy, isAsked } = chooseName(file, { named, env })
  if (name === demoName) return { ...demo, chosenBy }
  const values = profileValues(file, name)
  if (values === undefined && isAsked) throw noSuchProfile(file, name)
  return { name, chosenBy, values: values ?? {}, isNamed: named !== undefined }
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
