import type { SettingName } from './table.ts'

/** Where the paths begin that are added to an address. */
const ownPaths: { [K in SettingName]?: RegExp } = {
  baseUrl: /\/(?:[^/]+_cli|api\/image|v1beta)(?:\/|$)/,
  agentsUrl: /\/v1(?:\/sessions(?:\/.*)?)?\/?$/,
}

/** Why an address that is valid probably does not work: it has a part of the path that is added to it. */
export function pathDoubt(name: SettingName, address: string): string | undefined {
  const right = withoutOwnPath(name, address)
  if (right === undefined) return undefined
  const added = new URL(address).href.slice(right.length).replace(/\/$/, '')
  return `${name} should probably end before ${added}, which is added to it: ${right}`
}

/** An address up to the path of a call that was pasted with it; `undefined` if it has none. */
export function withoutOwnPath(name: SettingName, address: string): string | undefined {
  const ownPath = ownPaths[name]
  if (!ownPath) return undefined
  const { origin, pathname } = new URL(address)
  const at = pathname.search(ownPath)
  return at < 0 ? undefined : `${origin}${pathname.slice(0, at)}`
}
