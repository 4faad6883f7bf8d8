import { didYouMean } from '../argv/spelling.ts'
import type { Context } from '../context.ts'
import { toTsv } from '../io/tsv.ts'
import { profilePath } from './profile-file.ts'
import type { Profile } from './profiles.ts'
import { type Candidate, problemOf, readChosenValues } from './resolve.ts'
import { describeMismatch, profileFlag } from './service-settings.ts'
import { maskValue, settingNames } from './table.ts'

export interface ListOptions {
  /** Every value that applies, not the profile's alone. */
  effective?: boolean
}

/** Prints a profile's values: a table on a terminal, else lines of fields separated by tabs. */
export async function listProfile(context: Context, options: ListOptions): Promise<void> {
  const { profile, chosen } = await readChosenValues(context, options.effective)
  const rows = options.effective
    ? [
        describeProfile(context, profile),
        ...chosen.map((each) => [each.setting, show(each), each.origin.name]),
      ]
    : settingNames
        .filter((name) => profile.values[name] !== undefined)
        .map((name) => [name, show({ setting: name, value: profile.values[name] })])
  await print(context, rows)
  if (rows.length === 0 && context.output.isTerminal) noteNothing(context, profile)
  noteUnknownKeys(context, profile)
  if (options.effective) noteMismatches(context, chosen)
}

function describeProfile({ host }: Context, { name, chosenBy }: Profile): string[] {
  return ['profile', name, chosenBy, profilePath(host) ?? '']
}

/** A value that is not valid is not shown: it may be a secret in the wrong place. */
function show(candidate: Pick<Candidate, 'setting' | 'value'>): string {
  const problem = problemOf(candidate)
  return problem ? `(${problem})` : maskValue(candidate.setting, candidate.value)
}

/** On a terminal defaults are dim. */
async function print({ output, style }: Context, rows: string[][]): Promise<void> {
  if (!output.isTerminal) {
    for (const row of rows) await output.write(toTsv(row))
    return
  }
  const { createTable } = await import('../io/columns.ts')
  // Nothing is cut: the last column is the one that matters.
  for (const [index, line] of createTable({ width: Infinity })(rows).entries()) {
    const [name, , from] = rows[index] ?? []
    await output.write(`${from === 'default' && name !== 'profile' ? style.dim(line) : line}\n`)
  }
}

function noteNothing({ note }: Context, { name, isNamed }: Profile): void {
  const way = `'parley config init${profileFlag({ profile: name, isNamed })}' asks for them`
  note(`profile '${name}' has no settings yet: ${way}, and --effective shows what applies without`)
}

/** A misspelt key in the file has no effect. */
function noteUnknownKeys({ note }: Context, { name, values }: Profile): void {
  for (const key of Object.keys(values)) {
    if (settingNames.some((known) => known === key)) continue
    note(`profile '${name}': unknown setting '${key}'${didYouMean(key, settingNames)}`)
  }
}

function noteMismatches({ note }: Context, chosen: Candidate[]): void {
  const origins = Object.fromEntries(chosen.map(({ setting, origin }) => [setting, origin]))
  for (const service of ['gateway', 'agents'] as const) {
    const mismatch = describeMismatch({ origins }, service)
    if (mismatch) note(mismatch)
  }
}
