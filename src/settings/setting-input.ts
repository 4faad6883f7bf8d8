import { parseSetting } from './schemas.ts'
import { findSecretPair, type SettingName } from './table.ts'

/**
 * Removes quotes around the value, because no value needs quotes. Users often copy them from a file of
 * variables. `problem` is the end of a sentence that starts with the name of the setting, such as `must be
 * text`. It quotes no secret.
 */
export function parseSettingInput(name: SettingName, typed: string) {
  // The value may be a shell command that prints a secret. Its quotes stay, because the shell needs them.
  const [, , inner] = (findSecretPair(name)?.[1] !== name && /^\s*(["'])(.*)\1\s*$/s.exec(typed)) || []
  const { value, problem } = parseSetting(name, inner ?? typed)
  if (problem !== undefined) return { problem }
  const address = removeAddedPath(name, value)
  if (address === undefined) return { value, hadQuotes: inner !== undefined }
  return { problem: `must not contain the path of a request, which parley adds: use ${address}` }
}

const addedPaths: { [K in SettingName]?: RegExp } = {
  baseUrl: /\/(?:[^/]+_cli|api\/image|v1beta)(?:\/|$)/,
  agentsUrl: /\/v1(?:\/sessions(?:\/.*)?)?\/?$/,
}

function removeAddedPath(name: SettingName, address: unknown): string | undefined {
  const ownPath = addedPaths[name]
  if (!ownPath) return undefined
  const { origin, pathname } = new URL(String(address))
  const at = pathname.search(ownPath)
  return at < 0 ? undefined : `${origin}${pathname.slice(0, at)}`
}
