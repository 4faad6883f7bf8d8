import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  flagOf,
  hasFlag,
  type SettingName,
  settingNames,
  settingOf,
  variableOf,
} from '../src/settings/table.ts'

const readme = join(import.meta.dirname, '../README.md')

const code = (text: string) => `\`${text}\``

function row(name: SettingName): string {
  const { about, default: value, ownFlag } = settingOf(name)
  const flag = hasFlag(name) ? flagOf(name) : ownFlag
  const meaning = value === undefined ? about : `${about} (${code(String(value))})`
  return `| ${code(name)} | ${flag ? code(flag) : ''} | ${code(variableOf(name))} | ${meaning} |`
}

test("the README's table of settings is the program's: vitest run -u test/readme writes it", async () => {
  const table = [
    '| in the file | flag | environment | meaning (default) |',
    '|---|---|---|---|',
    ...settingNames.map(row),
  ]
  const section = `<!-- settings -->\n${table.join('\n')}\n<!-- /settings -->`
  const whole = readFileSync(readme, 'utf8').replace(/<!-- settings -->.*<!-- \/settings -->/s, () => section)
  expect(whole).toContain(section)
  await expect(whole).toMatchFileSnapshot(readme)
})
