import { lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownerOnlyMode, temporaryFolder } from '../../harness/run.ts'
import { image, inline, parts, png } from './image.ts'

test.each([
  ['A Red Fox!', 'a-red-fox'],
  ['  ---  fox, "quoted" / ../../etc ', 'fox-quoted-etc'],
  ['Лиса и 狐狸 2', 'лиса-и-狐狸-2'],
  ['नमस्ते दुनिया', 'नमस्ते-दुनिया'],
  ['e\u0301te\u0301', 'été'],
  ['🦊 !?', 'image'],
  ['con', 'image-con'],
  ['com¹', 'image-com¹'],
  ['a\n\u001b[31mb', 'a-31mb'],
  ['-rf', 'rf'],
  [`${'word '.repeat(11)}longer`, `${'word-'.repeat(11)}longe`],
  ['𝔘'.repeat(300), '𝔲'.repeat(60).normalize('NFC')],
])('I13: image derives a file name from the prompt %j', async (prompt, name) => {
  const ended = await image(['--', prompt])
  expect(ended.code).toBe(0)
  expect(ended.files).toEqual([ended.out.trimEnd()])
  expect(Buffer.byteLength(ended.out)).toBeLessThan(256)
  if (!prompt.startsWith('𝔘')) expect(ended.out).toBe(`${name}.png\n`)
})

test('image never chooses the name of a link or folder, even with --force (needs symbolic links)', async () => {
  const cwd = temporaryFolder({ victim: 'mine', 'fox-3.png': 'old' })
  symlinkSync('victim', join(cwd, 'fox.png'))
  mkdirSync(join(cwd, 'fox-2.png'))
  const ended = await image(['fox', '--force'], { cwd })
  expect(ended).toMatchObject({ code: 0, out: 'fox-4.png\n' })
  expect(ended.read('victim').toString()).toBe('mine')
  expect(ended.read('fox-3.png').toString()).toBe('old')
})

test.each([
  ['fox -o a.png', [], 'a.png\na-3.png\na-4.png\n'],
  ['fox -o a.png --force', ['a.png'], 'a.png\na-3.png\na-4.png\n'],
  ['a --force', ['a.png'], 'a.png\na-3.png\na-4.png\n'],
  ['a', ['a.png'], 'a-3.png\na-4.png\na-5.png\n'],
])('"image %s" gives further images the next free numbers', async (argv, existing, out) => {
  const files = Object.fromEntries(['a-2.png', ...existing].map((name) => [name, 'mine']))
  const three = parts(inline(png(1)), inline(png(2)), inline(png(3)))
  const ended = await image(argv.split(' '), { cwd: temporaryFolder(files), ...three })
  expect(ended).toMatchObject({ code: 0, out, saved: [] })
  expect(ended.read('a-2.png').toString()).toBe('mine')
  expect(ended.read('a-3.png')).toEqual(png(out.startsWith('a-3') ? 1 : 2))
})

test('I01: image replaces an existing target only with --force, and otherwise exits with 11', async () => {
  const cwd = temporaryFolder({ 'a.png': 'mine' })
  const refused = await image(['x', '-o', 'a.png'], { cwd })
  expect(refused).toMatchObject({ code: 11, out: '', requests: [], files: ['a.png'] })
  expect(refused.err).toBe('parley: a.png: it already exists (--force replaces it)\n  nothing was sent\n')
  expect(refused.read('a.png').toString()).toBe('mine')
  const forced = await image(['x', '-o', 'a.png', '--force'], { cwd })
  expect(forced).toMatchObject({ code: 0, out: 'a.png\n', files: ['a.png'] })
  expect(forced.read('a.png')).toEqual(png())
})

test.each([[], ['--force']])(
  'I03: image %s never writes through a symbolic link (needs symbolic links)',
  async (...flags) => {
    const cwd = temporaryFolder({ victim: 'mine' })
    symlinkSync('victim', join(cwd, 'live.png'))
    symlinkSync('nowhere', join(cwd, 'dangling.png'))
    for (const name of ['live.png', 'dangling.png']) {
      const ended = await image(['x', '-o', name, ...flags], { cwd })
      expect(ended).toMatchObject({ code: 11, requests: [], files: ['dangling.png', 'live.png', 'victim'] })
      expect(lstatSync(join(cwd, name)).isSymbolicLink()).toBe(true)
      expect(ended.read('victim').toString()).toBe('mine')
    }
    expect(readlinkSync(join(cwd, 'dangling.png'))).toBe('nowhere')
  },
)

test('I04: image exits with 11 if -o names a device, or a folder without a slash, also with --force', async () => {
  const cwd = temporaryFolder()
  mkdirSync(join(cwd, 'pics'))
  const refused = { code: 11, requests: [], files: ['pics'] }
  for (const line of ['/dev/null', 'pics', '.', '/dev/null --force', 'pics --force', '. --force'])
    expect(await image(['x', '-o', ...line.split(' ')], { cwd })).toMatchObject(refused)
  const { err } = await image(['x', '-o', 'pics'], { cwd })
  expect(err).toBe('parley: pics: it is a folder: -o pics/ saves images in it\n  nothing was sent\n')
})

test('image prints that nothing was sent if the folder of -o has the name of a file', async () => {
  const cwd = temporaryFolder({ file: 'mine' })
  const ended = await image(['x', '-o', 'file/pics/'], { cwd })
  expect(ended).toMatchObject({ code: 11, requests: [], files: ['file'] })
  expect(ended.err).toBe('parley: file/pics/: a part of its path is not a folder\n  nothing was sent\n')
})

test('I07: if another process creates the file of -o during the request, image exits with 11 and saves its image elsewhere', async () => {
  const cwd = temporaryFolder()
  const { exchange } = parts(inline(png(1)), inline(png(2)), inline(png(3)))
  const ended = await image(['x', '-o', 'a.png'], {
    cwd,
    exchange: (request) => {
      writeFileSync(join(cwd, 'a.png'), 'theirs')
      return exchange(request)
    },
  })
  expect(ended).toMatchObject({ code: 11, out: 'a-2.png\na-3.png\n', files: ['a-2.png', 'a-3.png', 'a.png'] })
  expect(ended.read('a.png').toString()).toBe('theirs')
  const [path = ''] = /\S+\.png$/m.exec(ended.err) ?? []
  expect(readFileSync(path)).toEqual(png(1))
  expect(lstatSync(path).mode & 0o777).toBe(ownerOnlyMode)
})
