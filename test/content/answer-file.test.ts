import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answering, message, ownerOnly, run, temporaryFolder } from '../harness/run.ts'

test('an answer that its file cannot take is kept in the temporary folder, and exit 11 (needs /dev/full)', async () => {
  const folder = temporaryFolder()
  const ended = await run(['chat', 'hi', '-o', '/dev/full', '--errors', 'json'], {
    exchange: answering(message('paid for')),
    env: { TMPDIR: folder },
  })
  expect(ended).toMatchObject({ code: 11, out: '' })
  const [name = ''] = readdirSync(folder)
  const kept = join(folder, name)
  expect(readFileSync(kept, 'utf8')).toBe('paid for\n')
  expect(statSync(kept).mode & 0o777).toBe(ownerOnly)
  expect(JSON.parse(ended.err).error).toMatchObject({ kind: 'file', kept })
})

test.each([
  ['there', true],
  ['away', false],
])(
  'an answer whose name was taken meanwhile is kept, also if the temporary folder is %s: %s',
  async (_, isThere) => {
    const cwd = temporaryFolder()
    const TMPDIR = isThere ? temporaryFolder() : join(cwd, 'none')
    const ended = await run(['chat', 'hi', '-o', 'a.txt', '--errors', 'json'], {
      cwd,
      env: { TMPDIR },
      exchange(request) {
        mkdirSync(join(cwd, 'a.txt'))
        return answering(message('paid for'))(request)
      },
    })
    expect(ended).toMatchObject({ code: 11, out: '' })
    const { kept } = JSON.parse(ended.err).error
    if (!isThere) expect(kept).toBe('a.txt.part')
    expect(readFileSync(isThere ? kept : join(cwd, kept), 'utf8')).toBe('paid for\n')
    expect(readdirSync(cwd)).toEqual(isThere ? ['a.txt'] : ['a.txt', 'a.txt.part'])
  },
)
