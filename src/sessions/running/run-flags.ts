import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { durationForms, parseDuration } from '../../settings/duration.ts'
import type { Policy } from '../policy/policy.ts'
import { readPolicy } from '../policy/policy-file.ts'

/** The flags that say how a run replies. */
export interface ReplyFlags {
  policy?: string
  audit?: string
  tool?: string[]
  toolTimeout?: string
}

/** Without a file a person decides. Throws a `CliError`: a usage error that names every problem. */
export async function readPolicyFlag({ input }: Context, path: string | undefined): Promise<Policy> {
  if (path === undefined) return { rules: [], fallback: { decision: 'ask' } }
  return readPolicy(await input.text(path, '--policy'), path)
}

/** The commands by the names of their tools. Throws a usage error. */
export function readToolFlags(given: readonly string[] = []): Map<string, string> {
  const tools = new Map<string, string>()
  for (const text of given) {
    const [, name = '', command = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === '' || command.trim() === '') throw usage(`--tool ${text}: must have the form NAME=COMMAND`)
    if (tools.has(name)) throw usage(`--tool: there are two commands for ${name}`)
    tools.set(name, command)
  }
  return tools
}

/** In milliseconds. Throws a usage error. */
export function readToolTimeout(text = '600'): number {
  const limit = parseDuration(text, 's')
  if (limit === undefined) throw usage(`--tool-timeout: must be a number of seconds, or ${durationForms}`)
  return limit === 0 ? Infinity : limit
}
