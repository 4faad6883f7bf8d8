import { expect, test } from 'vitest'
import { suggestedValues } from '../../src/cli/completion/scripts.ts'
import { loadCommands } from '../../src/cli/loaded-commands.ts'
import { execute } from '../harness/process.ts'
import { run } from '../harness/run.ts'

test('each value that completion knows belongs to a flag or an argument', async () => {
  const places = (await loadCommands()).flatMap(({ words, options, registeredArguments }) => [
    ...options.flatMap(({ long }) => [long, `${words.join(' ')} ${long}`]),
    ...registeredArguments.map((argument) => `${words.join(' ')} ${argument.name()}`),
  ])
  expect([...suggestedValues.keys()].filter((key) => !places.includes(key))).toEqual([])
})

test('the built program prints the same script, with other flags too', async () => {
  for (const name of ['bash', 'zsh', 'fish']) {
    const { out } = await run(['completion', name])
    expect(await execute(['completion', name])).toMatchObject({ code: 0, out, err: '' })
    expect(await execute(['-q', 'completion', name])).toMatchObject({ code: 0, out, err: '' })
  }
})

test('no row has a backslash, which fish would not read as the other shells do', async () => {
  const { out } = await run(['completion', 'fish'])
  const rows = out.split('\n').filter((line) => line.includes('\t') && /^\S/.test(line))
  expect(rows.length).toBeGreaterThan(500)
  for (const row of rows) expect(row.replaceAll("'\\''", '').replace(/ \\$/, '')).not.toContain('\\')
})

test('another shell is a usage error', async () => {
  expect(await run(['completion', 'tcsh'])).toMatchObject({
    code: 2,
    out: '',
    err: "parley: <shell>: 'tcsh' is not one of bash, zsh, fish\n",
  })
  expect(await run(['completion'])).toMatchObject({ code: 2, out: '' })
})
