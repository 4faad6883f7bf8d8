import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { outcomes } from '../../src/errors.ts'
import {
  flagOf,
  hasFlag,
  type SettingName,
  settingNames,
  settingOf,
  variableOf,
} from '../../src/settings/table.ts'

const readme = join(import.meta.dirname, '../../README.md')

const code = (text: string) => `\`${text}\``

function settingRow(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const flag = hasFlag(name) ? flagOf(name) : ownFlag
  const meaning = value === undefined ? about : `${about} (${code(String(value))})`
  return `| ${code(name)} | ${flag ? code(flag) : ''} | ${code(variableOf(name))} | ${meaning} |`
}

const tables = {
  settings: [
    '| in the file | flag | environment | meaning (default) |',
    '|---|---|---|---|',
    ...settingNames.map(settingRow),
  ],
  'exit codes': [
    '| exit | kind | when | run it again? |',
    '|---|---|---|---|',
    '| 0 | | done | |',
    ...Object.entries(outcomes).map(
      ([kind, { exit, when, again }]) => `| ${exit} | ${kind} | ${when} | ${again} |`,
    ),
  ],
}

test("the README's tables are the program's: vitest run test/package/readme -u writes them", async () => {
  let whole = readFileSync(readme, 'utf8')
  for (const [name, rows] of Object.entries(tables)) {
    const section = `<!-- ${name} -->\n${rows.join('\n')}\n<!-- /${name} -->`
    whole = whole.replace(new RegExp(`<!-- ${name} -->.*<!-- /${name} -->`, 's'), () => section)
    expect(whole).toContain(section)
  }
  await expect(whole).toMatchFileSnapshot(readme)
})
