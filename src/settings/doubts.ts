import { existsSync } from 'node:fs'
import { absolutePath } from '../io/paths.ts'
import { isPlainRemote } from '../wire/address.ts'
import type { Values } from './profiles.ts'
import type { SettingName } from './table.ts'

/** Where the paths begin that are added to an address. */
const ownPaths: { [K in SettingName]?: RegExp } = {
  baseUrl: /\/(?:[^/]+_cli|api\/image|v1beta)(?:\/|$)/,
  agentsUrl: /\/v1(?:\/sessions(?:\/.*)?)?\/?$/,
}

/** Why an address that is valid probably does not work: it has a part of the path that is added to it. */
export function pathDoubt(name: SettingName, address: string): string | undefined {
  const { origin, pathname } = new URL(address)
  const at = ownPaths[name] ? pathname.search(ownPaths[name]) : -1
  if (at < 0) return undefined
  const added = pathname.slice(at).replace(/\/$/, '')
  return `${name} should probably end before ${added}, which is added to it: ${origin}${pathname.slice(0, at)}`
}

/** Why a value of a profile, which is valid, may not work. */
export function valueDoubt(
  host: { readonly cwd: string },
  name: SettingName,
  values: Values,
): string | undefined {
  const value = values[name]
  if (typeof value !== 'string') return undefined
  if (name === 'cacert') {
    return existsSync(absolutePath(host, value)) ? undefined : `cacert: ${value} is not there`
  }
  if (name !== 'baseUrl' && name !== 'agentsUrl') return undefined
  const isRefused = isPlainRemote(value) && values.allowHttp !== true
  const refusal = `${name}: plain http to ${new URL(value).host} works only with --allow-http`
  return pathDoubt(name, value) ?? (isRefused ? refusal : undefined)
}
