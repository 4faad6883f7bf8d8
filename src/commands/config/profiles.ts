import type { Context } from '../../context.ts'
import { chooseName, profileNames, readProfiles } from '../../settings/profiles.ts'
import { escapeControls } from '../../terminal/escape.ts'

export function declare(): void {}

/** One name a line; on a terminal the current one is marked. */
export async function run({ host, flags, note, output }: Context): Promise<void> {
  const file = await readProfiles(host, note)
  const current = chooseName(file, { named: flags.profile, env: host.env }).name
  for (const name of profileNames(file)) {
    const mark = name === current ? '* ' : '  '
    await output.write(`${output.isTerminal ? mark : ''}${escapeControls(name)}\n`)
  }
}
