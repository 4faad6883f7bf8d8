import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { execute } from '../harness/process.ts'
import { answering, message, readText, rejected, run, temporaryFolder } from '../harness/run.ts'
import { createProfileHome } from '../settings/profile-home.ts'

const policy = '{"rules":[],"default":{"decision":"deny"}}'
const thread = '{"contents":[]}'
const events = '{"events":[{"type":"user.interrupt"}]}'

/** Creates a folder with a batch, and with the file that two arguments of the tested command line name. */
const folderWith = (text: string | undefined) =>
  temporaryFolder({ b: '"hi"\n', ...(text !== undefined && { a: text }) })

const chat = ['chat', 'hi']
const image = ['image', 'a fox', '-m', 'm']
const send = ['events', 'send', '-s', 'sesn_1', '--no-stdin']
const task = ['events', 'run', 'hi', '-s', 'sesn_1', '--no-stdin']

test.each<[argv: string[], flags: string, text?: string]>([
  [[...chat, '--thread', 'a', '--report', 'a'], '--thread and --report', thread],
  [[...chat, '-o', 'a', '--report', 'a'], '-o and --report'],
  [[...chat, '-f', '', '-o', 'a', '--report', 'a'], '-o and --report'],
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
])('F30: parley exits with 2 if two flags name one file: %j', async (argv, flags, text) => {
  const cwd = folderWith(text)
  const err = `parley: ${flags} are the same file\n`
  expect(await run(argv, { cwd })).toMatchObject({ code: 2, out: '', requests: [], err })
  expect(existsSync(join(cwd, 'a')) ? readText(cwd, 'a') : undefined).toBe(text)
})

test('F30: parley exits with 2 if a flag names the profile file', async () => {
  const { cwd, path, text } = createProfileHome('{"profiles":{}}')
  for (const flag of ['-o', '--report', '--thread']) {
    const err = `parley: the profile file and ${flag} are the same file\n`
    expect(await run([...chat, flag, path], { cwd })).toMatchObject({ code: 2, requests: [], err })
  }
  expect(text()).toBe('{"profiles":{}}')
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
  const cwd = temporaryFolder({ 'a.gif': 'GIF89a' })
  const argv = [...image, '-f', 'a.gif', '-o', 'a.gif']
  const err = 'parley: -f and -o are the same file (--force replaces it)\n'
  expect(await run(argv, { cwd })).toMatchObject({ code: 2, requests: [], err })
  expect(readText(cwd, 'a.gif')).toBe('GIF89a')
  expect((await run([...argv, '--force'], { cwd })).code).toBe(0)
})

test.each([
  [['chat', '--batch', 'b', '--results', 'link', '--resume', '--report', 'there'], '--results and --report'],
  [[...chat, '-o', 'link', '--thread', 'there'], '-o and --thread'],
  [[...chat, '-o', 'folder/../a', '--thread', 'a'], '-o and --thread'],
  [[...chat, '-o', 'here/new', '--thread', 'new'], '-o and --thread'],
])('F30: parley exits with 2 if two paths name one file: %j (needs POSIX files)', async (argv, flags) => {
  const cwd = folderWith(thread)
  mkdirSync(join(cwd, 'folder'))
  symlinkSync('there', join(cwd, 'link'))
  symlinkSync('.', join(cwd, 'here'))
  const err = `parley: ${flags} are the same file\n`
  expect(await run(argv, { cwd })).toMatchObject({ code: 2, out: '', requests: [], err })
  expect(readText(cwd, 'a')).toBe(thread)
  expect(readdirSync(cwd)).toEqual(['a', 'b', 'folder', 'here', 'link'])
})

test('F30: parley exits with 11 if the file of --results is a link that leads to itself (needs POSIX files)', async () => {
  const cwd = folderWith('')
  symlinkSync('loop', join(cwd, 'loop'))
  const argv = ['chat', '--batch', 'b', '--results', 'loop', '--resume']
  expect(await run(argv, { cwd })).toMatchObject(rejected(11, 'loop: it is a symbolic link'))
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
