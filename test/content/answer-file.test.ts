import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  answering,
  message,
  ownerOnlyMode,
  readText,
  rejected,
  run,
  temporaryFolder,
} from '../harness/run.ts'
import { createFailingStdout } from '../harness/stdout.ts'

test('chat exits with 11 and saves the answer in the temporary folder if -o is on a full disk (needs /dev/full)', async () => {
  const TMPDIR = temporaryFolder()
  const world = { exchange: answering(message('paid for')), env: { TMPDIR } }
  const ended = await run(['chat', 'hi', '-o', '/dev/full', '--errors', 'json'], world)
  expect(ended).toMatchObject({ code: 11, out: '' })
  const [name = ''] = readdirSync(TMPDIR)
  expect(readText(TMPDIR, name)).toBe('paid for')
  expect(statSync(join(TMPDIR, name)).mode & 0o777).toBe(ownerOnlyMode)
  expect(JSON.parse(ended.err).error).toMatchObject({ kind: 'file', kept: join(TMPDIR, name) })
})

test.each([
  ['chat -o FILE', ['chat', 'hi', '-o', '/proc/answer']],
  ['image -o FILE', ['image', 'hi', '-m', 'm', '-o', '/proc/a.png']],
  ['image -o DIR/', ['image', 'hi', '-m', 'm', '-o', '/proc/']],
])('parley sends nothing if no file can be created in the folder of %s (needs /proc)', async (_, argv) => {
  expect(await run(argv)).toMatchObject(rejected(11, /^parley: \/proc\//))
})

test('chat exits with 11 and names the folder if -o is a folder that does not exist', async () => {
  const err = 'parley: missing/: no such folder: give the path of a file\n  nothing was sent\n'
  expect(await run(['chat', 'hi', '-o', 'missing/'])).toMatchObject(rejected(11, err))
})

test('image prints the image as base64 on stderr if it can be saved nowhere', async () => {
  const stdout = createFailingStdout(0, 'ENOSPC')
  const ended = await run(['image', 'hi', '-m', 'm', '-o', '-'], { env: { TMPDIR: '/none' }, stdout })
  expect(ended).toMatchObject({ code: 11, out: '' })
  expect(ended.err).toMatch(/\n {2}the answer:\n {2}\| iVBORw0KGgo/)
})

test('chat -o FILE saves the answer as FILE.part if FILE has become a folder', async () => {
  const cwd = temporaryFolder()
  const ended = await run(['chat', 'hi', '-o', 'a.txt', '--errors', 'json'], {
    cwd,
    exchange(request) {
      mkdirSync(join(cwd, 'a.txt'))
      return answering(message('paid for'))(request)
    },
  })
  expect(ended).toMatchObject({ code: 11, out: '' })
  expect(JSON.parse(ended.err).error.kept).toBe('a.txt.part')
  expect(readText(cwd, 'a.txt.part')).toBe('paid for')
})
