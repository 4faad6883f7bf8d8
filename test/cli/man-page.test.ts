import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { man, version } from '../../package.json'
import { loadAllCommands } from '../../src/cli/loaded-commands.ts'
import { renderManPage } from '../../src/cli/man-page.ts'
import { exitCodes } from '../../src/errors.ts'
import { getSettingEnvVar, getSettingFlag, settingNames } from '../../src/settings/table.ts'
import { childEnvironment } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/run.ts'

/** Renders a page like `man` on a screen of 80 columns. Fails if man prints a warning. */
function show(page: string): string {
  const file = join(temporaryFolder(), 'page.1')
  writeFileSync(file, page)
  const { status, stdout, stderr } = spawnSync('man', ['--warnings', '-l', file], {
    encoding: 'utf8',
    env: {
      ...childEnvironment,
      LC_ALL: 'C.UTF-8',
      MANWIDTH: '80',
      MANPAGER: 'cat',
      MAN_KEEP_FORMATTING: '',
    },
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout
}

const page = await renderManPage(version)

test('the build writes the man page to the path in package.json', () => {
  // npm 11 installs man pages only if they are in an array.
  expect(man).toEqual([expect.any(String)])
  expect(readFileSync(join(import.meta.dirname, '../..', man[0] as string), 'utf8')).toBe(page)
})

test('the man page has every command, flag, example, setting, variable and exit code (needs man)', async () => {
  const shown = show(page)
  const lines = shown.split('\n').map((line) => line.trim())
  const has = (start: string) => lines.some((line) => line === start || line.startsWith(`${start} `))
  for (const command of await loadAllCommands()) {
    const { commandNames, module, ownFlags: flags, sharedFlags: shared } = command
    if (module) {
      const begin = lines.indexOf(`parley ${commandNames.join(' ')}`)
      expect(begin).toBeGreaterThan(0)
      const own = lines.slice(
        begin,
        lines.findIndex((line, index) => index > begin && line === 'Examples:'),
      )
      const named = flags.filter(({ hidden }) => !hidden)
      expect(named.filter((flag) => !own.some((line) => line.startsWith(flag.flags)))).toEqual([])
    }
    const general = shared.filter(({ long }) => !settingNames.some((name) => getSettingFlag(name) === long))
    const others = flags.filter(({ long }) => long !== '--version')
    expect([...others, ...general].map((flag) => flag.flags).filter((flag) => !has(flag))).toEqual([])
    expect((module?.examples ?? []).filter((example) => !lines.includes(example))).toEqual([])
  }
  const exits = Object.entries(exitCodes).map(([kind, exit]) => `${exit}`.padEnd(4) + kind)
  expect(['0', ...exits].filter((exit) => !has(exit))).toEqual([])
  expect(settingNames.filter((name) => !has(name) || !has(getSettingEnvVar(name)))).toEqual([])
})
