import type { Context } from '../../context.ts'
import { oneLine } from '../../io/escape.ts'
import { toTsv } from '../../io/tsv.ts'
import { readProfiles } from '../../settings/profile-file.ts'
import { chooseName, profileNames } from '../../settings/profiles.ts'

export const examples = ['parley config profiles']

/** One name a line, for scripts nothing else; on a terminal the current one is marked. */
export async function run({ host, flags, note, output }: Context): Promise<void> {
  const file = await readProfiles(host, note)
  const current = chooseName(file, { named: flags.profile, env: host.env }).name
  const names = profileNames(file)
  for (const name of names) {
    const mark = name === current ? '* ' : '  '
    await output.write(output.isTerminal ? `${mark}${oneLine(name)}\n` : toTsv([name]))
  }
  if (output.isTerminal && !names.includes(current)) {
    note(`there is no profile '${current}' yet: 'parley config init' creates it`)
  }
}
