import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { configFolder, temporaryFolder } from '../harness/run.ts'

export const token = 'canary-token-aaaa1111'
export const profileFileContent = { profiles: { default: { baseUrl: 'https://a.test', accessToken: token } } }
export const noSettings = { PARLEY_BASE_URL: '', PARLEY_ACCESS_TOKEN: '' }

/** Creates a home folder with a profile file, given as text or JSON. */
export function createProfileHome(text: string | object = profileFileContent, mode = 0o600) {
  const cwd = temporaryFolder()
  const folder = join(cwd, configFolder)
  const path = join(folder, 'config.json')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(path, typeof text === 'string' ? text : JSON.stringify(text))
  chmodSync(path, mode)
  return { cwd, folder, path, text: () => readFileSync(path, 'utf8'), world: { cwd, env: noSettings } }
}
