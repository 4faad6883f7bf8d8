import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute } from '../harness/process.ts'
import { answering, configFolder, message, readText, run, temporaryFolder } from '../harness/run.ts'

const policy = '{"rules":[],"default":{"decision":"deny"}}'
const thread = '{"contents":[]}'
const events = '{"events":[{"type":"user.interrupt"}]}'

/** Creates a folder with one file. Two arguments of the tested command line name this file. */
function folderWith(text: string | undefined, name = 'a') {
  const cwd = temporaryFolder()
  if (text !== undefined) writeFileSync(join(cwd, name), text)
  return cwd
}

const chat = ['chat', 'hi']
const image = ['image', 'a fox', '-m', 'm']
const send = ['events', 'send', '-s', 'sesn_1', '--no-stdin']
const task = ['events', 'run', 'hi', '-s', 'sesn_1', '--no-stdin']

test.each<[argv: string[], expectedText: string, text?: string]>([
  [[...chat, '--thread', 'a', '--report', 'a'], '--thread and --report', thread],
  [[...chat, '-o', 'a', '--report', 'a'], '-o and --report'],
  [[...chat, '-o', 'a', '--thread', 'a'], '-o and --thread', thread],
  [['chat', '-i', 'a', '--no-stdin', '-o', 'a'], '-i and -o', '{"contents":[]}'],
  [[...chat, '--system', '@a', '-o', 'a'], '--system and -o', 'Be brief.'],
  [[...chat, '-H', '@a', '--report', 'a'], '-H and --report', 'x-a: b'],
  [[...chat, '-H', 'X-A: @a', '--report', 'a'], '-H and --report', 'b'],
  [['chat', '--batch', 'a', '--results', 'a'], '--batch and --results', '"hi"\n'],
  [['chat', '--batch', 'b', '--results', 'a', '--resume', '--report', 'a'], '--results and --report', ''],
  [[...send, '--message', '@a', '--report', 'a'], '--message and --report', 'hi'],
  [[...send, '-i', 'a', '--report', 'a'], '-i and --report', events],
  [[...task, '--policy', 'a', '--audit', 'a'], '--policy and --audit', policy],
  [['policy', 'check', 'b', 'a', '--report', 'a'], 'EVENTS and --report', ''],
  [['api', 'gateway', '/v1/m', '-i', 'a', '-o', 'a'], '-i and -o', '{}'],
])('F30: parley exits with 2 if two flags name one file: %j', async (argv, expectedText, text) => {
  const cwd = folderWith(text)
  writeFileSync(join(cwd, 'b'), '"hi"\n')
  const ended = await run(argv, { cwd })
  expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  expect(ended.err).toBe(`parley: ${expectedText} are the same file\n`)
  expect(existsSync(join(cwd, 'a')) ? readText(cwd, 'a') : undefined).toBe(text)
})

test('F30: parley exits with 2 if -o names the file of --thread by another path', async () => {
  const cwd = folderWith(thread)
  mkdirSync(join(cwd, 'folder'))
  symlinkSync('a', join(cwd, 'link'))
  symlinkSync('.', join(cwd, 'here'))
  const ended = await run([...chat, '-o', 'folder/../a', '--thread', 'a'], { cwd })
  expect(ended).toMatchObject({ code: 2, requests: [] })
  expect(readText(cwd, 'a')).toBe(thread)
  const fresh = await run([...chat, '-o', 'here/new', '--thread', join(cwd, 'new')], { cwd })
  expect(fresh).toMatchObject({ code: 2, requests: [] })
})

test('F30: parley exits with 2 if a flag names the profile file', async () => {
  const cwd = temporaryFolder()
  const path = join(cwd, configFolder, 'config.json')
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
  writeFileSync(path, '{"profiles":{}}', { mode: 0o600 })
  for (const flag of ['-o', '--report', '--thread']) {
    const ended = await run([...chat, flag, path], { cwd })
    expect(ended).toMatchObject({ code: 2, requests: [] })
    expect(ended.err).toBe(`parley: the profile file and ${flag} are the same file\n`)
  }
  expect(readFileSync(path, 'utf8')).toBe('{"profiles":{}}')
})

test.each<[why: string, argv: string[], text?: string]>([
  ['if both flags read the file', [...chat, '-f', 'a', '-f', 'a', '--system', '@a'], 'notes'],
  ['if -o replaces a file of -f', [...chat, '-f', 'a', '-o', 'a'], 'notes'],
  ['if a later -o replaces the first one', [...chat, '-o', 'a', '-o', 'b', '--thread', 'a'], thread],
  ['if one of the flags is -o -', [...chat, '-o', '-', '--thread', 'a'], thread],
])('F30: parley accepts one file for two flags %s', async (_, argv, text) => {
  const cwd = folderWith(text)
  expect(await run(argv, { cwd, exchange: answering(message('ok')) })).toMatchObject({ code: 0 })
})

test('F30: image replaces the image that -f names only with --force', async () => {
  const cwd = folderWith('GIF89a', 'a.gif')
  const argv = [...image, '-f', 'a.gif', '-o', 'a.gif']
  const err = 'parley: -f and -o are the same file (--force replaces it)\n'
  expect(await run(argv, { cwd })).toMatchObject({ code: 2, requests: [], err })
  expect(readText(cwd, 'a.gif')).toBe('GIF89a')
  expect((await run([...argv, '--force'], { cwd })).code).toBe(0)
})

test.each([
  [['chat', '--batch', 'in', '--results', 'link', '--resume', '--report', 'there'], '--results and --report'],
  [[...chat, '-o', 'link', '--thread', 'there'], '-o and --thread'],
])('F30: parley exits with 2 if a link names a file: %j (needs POSIX files)', async (argv, expectedText) => {
  const cwd = folderWith('"hi"\n', 'in')
  symlinkSync('there', join(cwd, 'link'))
  symlinkSync(join(cwd, 'link'), join(cwd, 'second'))
  const ended = await run(argv, { cwd })
  expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  expect(ended.err).toBe(`parley: ${expectedText} are the same file\n`)
  expect(existsSync(join(cwd, 'there'))).toBe(false)
})

test('F30: parley exits with 11 if the file of --results is a link that leads to itself (needs POSIX files)', async () => {
  const cwd = folderWith('"hi"\n', 'in')
  symlinkSync('loop', join(cwd, 'loop'))
  const ended = await run(['chat', '--batch', 'in', '--results', 'loop', '--resume'], { cwd })
  expect(ended).toMatchObject({ code: 11, requests: [] })
  expect(ended.err).toMatch(/loop: it is a symbolic link/)
})

test.each([
  ['stdin', 'exec 0< a', 'the file that stdin reads'],
  ['stdout', 'exec 1>> a', 'the file that receives stdout'],
])('F30: parley exits with 2 if --thread names the file on %s', async (_, before, file) => {
  const cwd = folderWith(thread)
  const ended = await execute([...chat, '--thread', 'a'], { cwd, before })
  expect(ended).toMatchObject({ code: 2, err: `parley: ${file} and --thread are the same file\n` })
  expect(readText(cwd, 'a')).toBe(thread)
})
