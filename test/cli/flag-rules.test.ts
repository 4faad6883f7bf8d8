import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { rootCommandEntry } from '../../src/cli/command-tree.ts'
import { loadAllCommands } from '../../src/cli/loaded-commands.ts'
import { rejected, run, temporaryFolder } from '../harness/run.ts'

test.each([
  ['events run hi -s s --tool-timeout 5', '--tool-timeout works only with --tool'],
  ['chat hi --max-failed 0', '--max-failed works only with --batch'],
  ['image hi --share 1/2', '--share works only with --batch'],
  ['chat --batch b.nd --resume', '--resume works only with --results'],
  ['chat --batch b.nd --stream', '--stream and --batch exclude each other'],
  ['image --batch b.nd -o d/ --usage', '--usage and --batch exclude each other'],
  ['chat hi --markdown --raw', '--markdown and --raw exclude each other'],
  ['chat hi --markdown --schema s.json', '--markdown and --schema exclude each other'],
  ['chat hi --schema s.json --raw', '--schema and --raw exclude each other'],
  ['chat hi --schema-retries 1', '--schema-retries works only with --schema'],
  ['image hi --raw -o a.png', '--output and --raw exclude each other'],
  ['chat --batch b.nd --thread t.json', '--thread and --batch exclude each other'],
  ['chat --batch b.nd -o out', '--output and --batch exclude each other: use --results FILE'],
  ['chat --batch b.nd --curl', '--curl and --batch exclude each other: use --dry-run'],
  ['chat hi --fail-on-empty --no-stdin', '--no-stdin and --fail-on-empty exclude each other'],
  ['events confirm -s s t1 -i p.json', '--input and TOOL-USE-ID exclude each other'],
  ['events confirm -s s t1 --allow --deny', '--allow and --deny exclude each other'],
  ['events list -s s --beta x --no-beta', '--beta and --no-beta exclude each other'],
  ['--retry-unknown events list -s s', '--retry-unknown works only with chat or image or api'],
  ['config check --raw', '--raw and config check exclude each other'],
  ['--curl config check', '--curl and config check exclude each other'],
  ['policy check p.json --fail-on-deny', '--fail-on-deny works only with EVENTS or --session'],
  ['policy check p.json --header a:b', '--header works only with --session'],
  ['events send hi -s s --raw --ids', '--raw and --ids exclude each other'],
  ['events send hi -s s --ids --follow', '--ids and --follow exclude each other'],
])('parley exits with 2 if one of the flags would have no effect: %s', async (line, expectedText) => {
  const cwd = temporaryFolder({ 'b.nd': '"a"\n', 's.json': '{}', 'p.json': '{"rules":[]}' })
  const ended = await run(line.split(' '), { cwd, env: { PARLEY_IMAGE_MODEL: 'm' } })
  expect(ended).toMatchObject(rejected(2, `parley: ${expectedText}\n`))
})

const appending = ['chat --batch b.nd --results', 'chat hi --thread', 'events run hi -s sesn_1 --audit']
test.each(appending)('parley exits with 2 if the file is named - or like a folder: %s', async (line) => {
  const cwd = temporaryFolder({ 'b.nd': '"a"\n' })
  for (const name of ['-', 'missing/'])
    expect(await run([...line.split(' '), name], { cwd })).toMatchObject(
      rejected(2, `'${name}' is not the name of a file`),
    )
  expect(readdirSync(cwd)).toEqual(['b.nd'])
})

test.each([
  ['chat hi -f', '-f: '],
  ['chat -i', '-i: '],
  ['chat hi -o', '-o: '],
  ['chat hi --system @', '--system: '],
  ['chat --batch', '--batch: '],
  ['chat hi --report', '--report: '],
  ['image hi -f', '-f: '],
  ['events send hi -s s -f', '-f: '],
  ['events run hi -s s --policy', '--policy: '],
  ['policy check', ''],
])('parley exits with 2 and names the flag if a file has an empty name: %s ""', async (line, what) => {
  const words = line.endsWith('@') ? line.split(' ') : [...line.split(' '), '']
  const ended = await run(words, { env: { PARLEY_IMAGE_MODEL: 'm' }, cwd: temporaryFolder() })
  expect(ended).toMatchObject(
    rejected(2, `parley: ${what}the name of a file is empty: is a variable unset?\n`),
  )
})

test('--batch accepts --no-stream and --no-markdown, although a batch never streams and has no Markdown layout', async () => {
  const cwd = temporaryFolder({ 'b.nd': '"a"\n' })
  const argv = ['chat', '--batch', 'b.nd', '--no-stream', '--no-markdown']
  expect(await run(argv, { cwd })).toMatchObject({ code: 0 })
})

test('each flag that needs or excludes another name belongs to the same command as that name', async () => {
  for (const { module, longFlags, registeredArguments } of await loadAllCommands(rootCommandEntry)) {
    const names = [...longFlags, ...registeredArguments.map((argument) => argument.name().toUpperCase())]
    for (const [flag, { requires = [], excludes = [] }] of Object.entries(module?.flagRules ?? {}))
      expect(names).toEqual(expect.arrayContaining([flag, ...requires, ...excludes]))
  }
})
