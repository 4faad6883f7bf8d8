import { expect, test } from 'vitest'
import { rootCommandEntry } from '../../src/cli/command-tree.ts'
import { completionValues } from '../../src/cli/completion/scripts.ts'
import { loadAllCommands } from '../../src/cli/loaded-commands.ts'
import { execute } from '../harness/process.ts'
import { run } from '../harness/run.ts'

test('each value that completion suggests belongs to an existing flag or argument', async () => {
  const parameters = (await loadAllCommands(rootCommandEntry)).flatMap(
    ({ commandNames, options, registeredArguments }) => [
      ...options.flatMap(({ long }) => [long, `${commandNames.join(' ')} ${long}`]),
      ...registeredArguments.map((argument) => `${commandNames.join(' ')} ${argument.name()}`),
    ],
  )
  expect([...completionValues.keys()].filter((key) => !parameters.includes(key))).toEqual([])
})

test('the built program prints the same completion scripts as the sources, also with -q', async () => {
  for (const name of ['bash', 'zsh', 'fish']) {
    const { out } = await run(['completion', name])
    expect(await execute(['-q', 'completion', name])).toMatchObject({ code: 0, out, err: '' })
  }
})

test('no row of the fish completion has a backslash, which fish parses differently', async () => {
  const { out } = await run(['completion', 'fish'])
  const rows = out.split('\n').filter((line) => line.includes('\t') && /^\S/.test(line))
  expect(rows.length).toBeGreaterThan(500)
  for (const row of rows) expect(row.replaceAll("'\\''", '').replace(/ \\$/, '')).not.toContain('\\')
})
