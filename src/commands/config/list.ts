import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { toTsv } from '../../io/tsv.ts'
import { profilePath } from '../../settings/profile-file.ts'
import { readProfile } from '../../settings/profiles.ts'
import { type Candidate, chooseValues, problemOf } from '../../settings/resolve.ts'
import { profileFlag } from '../../settings/service-settings.ts'
import { maskValue, settingNames } from '../../settings/table.ts'

export function declare(command: Command): void {
  command.option('--effective', 'every value that applies, and where it comes from')
}

export const notes = ['In a pipe the columns are separated by tabs.']

export const examples = ['parley config list', 'parley config list --effective']

/** Prints a profile's values: a table on a terminal, else lines of fields separated by tabs. */
export async function run(context: Context, { effective }: { effective?: boolean }): Promise<void> {
  const { host, flags, note, output } = context
  const profile = await readProfile(context, effective)
  const { name, chosenBy, values } = profile
  const sources = { flags: flags.settings, profile, env: host.env }
  const rows = effective
    ? [
        ['profile', name, chosenBy, profilePath(host) ?? ''],
        ...chooseValues(sources).map((each) => [each.setting, show(each), each.origin.name]),
      ]
    : settingNames
        .filter((setting) => values[setting] !== undefined)
        .map((setting) => [setting, show({ setting, value: values[setting] })])
  // Nothing is cut: the last column is the one that matters.
  const table = output.isTerminal
    ? (await import('../../io/columns.ts')).createTable({ width: Infinity })
    : undefined
  for (const line of table ? table(rows) : rows.map(toTsv)) await output.write(table ? `${line}\n` : line)
  if (rows.length === 0 && output.isTerminal) {
    const way = `'parley config init${profileFlag({ profile })}' asks for them`
    note(`profile '${name}' has no settings yet: ${way}, and --effective shows what applies without`)
  }
}

/** A value that is not valid is not shown: it may be a secret in the wrong place. */
function show(candidate: Pick<Candidate, 'setting' | 'value'>): string {
  const problem = problemOf(candidate)
  return problem ? `(${problem})` : maskValue(candidate.setting, candidate.value)
}
