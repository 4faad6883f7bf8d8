import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CliError, fileProblem } from '../errors.ts'
import { describeJsonError } from '../wire/json.ts'
import * as z from '../wire/zod.ts'
import { configFolder, type Place } from './folder.ts'
import type { SettingName } from './table.ts'

/** The profile file: what other versions of parley added to it passes through. */
const ProfileFile = z.looseObject({
  current: z.optional(z.string()),
  profiles: z.optional(z.record(z.string(), z.record(z.string(), z.unknown()))),
})
export type ProfileFile = z.infer<typeof ProfileFile>

export interface Profile {
  name: string
  values: Partial<Record<SettingName, unknown>>
  /** Chosen by `--profile`, so that the environment's addresses and secrets don't mix with it. */
  isNamed: boolean
}

/** The name of the profile that answers from the built-in emulator, and cannot be changed. */
export const demoName = 'demo'

const demo: Profile = {
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

/** The profile file's path, or `undefined` where there is no place for one. */
export function profilePath(place: Place): string | undefined {
  const folder = configFolder(place)
  return folder && join(folder, 'config.json')
}

/** Reads the profile file; a file that is not there is an empty one. Throws a `CliError` that never quotes it. */
export async function readProfiles(path: string | undefined): Promise<ProfileFile> {
  if (path === undefined) return {}
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new CliError('credentials', `${path}: ${fileProblem(error)}`)
  }
  const parsed = ProfileFile.safeParse(await parse(text, path))
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new CliError('credentials', `${path}: ${issue?.path.join('.') || 'the file'}: ${issue?.message}`)
}

async function parse(text: string, path: string): Promise<unknown> {
  try {
    return JSON.parse(text)
  } catch {
    throw new CliError('credentials', `${path}: not valid JSON: ${await describeJsonError(text)}`)
  }
}

/** Chooses the profile: `--profile`, else `PARLEY_PROFILE`, else the file's current one, else `default`. */
export function chooseProfile(
  file: ProfileFile,
  { named, env }: { named: string | undefined; env: Place['env'] },
): Profile {
  const wanted = named || env.PARLEY_PROFILE
  const name = wanted || file.current || 'default'
  if (name === demoName) return demo
  const values = Object.entries(file.profiles ?? {}).find(([candidate]) => candidate === name)?.[1]
  if (values === undefined && wanted) {
    const known = Object.keys(file.profiles ?? {}).concat(demoName)
    throw new CliError('credentials', `there is no profile '${name}': there is ${known.join(', ')}`)
  }
  return { name, values: values ?? {}, isNamed: named !== undefined }
}
