import { didYouMean } from '../argv/spelling.ts'
import type { Context } from '../context.ts'
import { toTsv } from '../io/tsv.ts'
import { profilePath } from './profile-file.ts'
import type { Profile } from './profiles.ts'
import { type Candidate, problemOf, readChosenValues } from './resolve.ts'
import { profileFlag } from './service-settings.ts'
import { maskValue, settingNames } from './table.ts'

export interface ListOptions {
  /** Every value that applies, not the profile's alone. */
  effective?: boolean
}

/** Prints a profile's values: a table on a terminal, else lines of fields separated by tabs. */
export async function listProfile(context: Context, { effective }: ListOptions): Promise<void> {
  const { host, note, output } = context
  const { profile, chosen } = await readChosenValues(context, effective)
  const { name, chosenBy, isNamed, values } = profile
  const own = settingNames.filter((setting) => values[setting] !== undefined)
  const rows = effective
    ? [
        ['profile', name, chosenBy, profilePath(host) ?? ''],
        ...chosen.map((each) => [each.setting, show(each), each.origin.name]),
      ]
    : own.map((setting) => [setting, show({ setting, value: values[setting] })])
  // Nothing is cut: the last column is the one that matters.
  const table = output.isTerminal
    ? (await import('../io/columns.ts')).createTable({ width: Infinity })
    : undefined
  for (const line of table ? table(rows) : rows.map(toTsv)) await output.write(table ? `${line}\n` : line)
  if (rows.length === 0 && output.isTerminal) {
    const way = `'parley config init${profileFlag({ profile: name, isNamed })}' asks for them`
    note(`profile '${name}' has no settings yet: ${way}, and --effective shows what applies without`)
  }
  noteUnknownKeys(context, profile)
}

/** A value that is not valid is not shown: it may be a secret in the wrong place. */
function show(candidate: Pick<Candidate, 'setting' | 'value'>): string {
  const problem = problemOf(candidate)
  return problem ? `(${problem})` : maskValue(candidate.setting, candidate.value)
}

/** A misspelt key in the file has no effect. */
function noteUnknownKeys({ note }: Context, { name, values }: Profile): void {
  for (const key of Object.keys(values)) {
    if (settingNames.some((known) => known === key)) continue
    note(`profile '${name}': unknown setting '${key}'${didYouMean(key, settingNames)}`)
  }
}
