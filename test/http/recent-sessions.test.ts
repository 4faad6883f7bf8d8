import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { execute } from '../harness/process.ts'
import { homeVariables, ownerOnlyMode, readText, run, temporaryFolder } from '../harness/run.ts'
import { response, serve } from '../harness/server.ts'

/** Creates a home folder, and a service that has every session except those whose id begins with `gone`. */
async function createHome() {
  const service = await serve((socket, request) => {
    const isGone = request.includes('/gone')
    socket.end(response(isGone ? '{}' : '{"data":[]}', isGone ? '404 Not Found' : '200 OK'))
  })
  onTestFinished(service.close)
  const cwd = temporaryFolder()
  const env = { ...homeVariables(cwd), PARLEY_AGENTS_URL: service.url }
  const folder = join(cwd, '.cache/parley')
  const argv = (id: string) => ['events', 'list', `--session=${id}`]
  return {
    folder,
    file: join(folder, 'sessions'),
    ids: () => readText(folder, 'sessions').split('\n').slice(0, -1),
    list: (id: string, more: string[] = []) => run([...argv(id), ...more], { cwd, env, exchange: 'network' }),
    listApart: (id: string) => execute(argv(id), { cwd, env }),
  }
}

test('TAB completion offers the 20 most recently used sessions, newest first', async () => {
  const { list, ids, file, folder } = await createHome()
  for (let i = 1; i <= 22; i++) expect(await list(`sesn_${i}`)).toMatchObject({ code: 0 })
  await list('sesn_7')
  const others = Array.from({ length: 20 }, (_, i) => `sesn_${22 - i}`).filter((id) => id !== 'sesn_7')
  expect(ids()).toEqual(['sesn_7', ...others])
  expect(statSync(file).mode & 0o777).toBe(ownerOnlyMode)
  expect(readdirSync(folder)).toEqual(['sessions'])
})

test('TAB completion offers no session that the service rejected, no demo session and no invalid id', async () => {
  const { list, ids, folder } = await createHome()
  await list('sesn_1')
  expect(await list('gone_1')).toMatchObject({ code: 4 })
  for (const odd of ['a b', 'a.b', '$(x)', 'ä', 'x'.repeat(129)])
    expect(await list(odd)).toMatchObject({ code: 0 })
  expect(await list('sesn_2', ['--profile', 'demo'])).toMatchObject({ code: 0 })
  expect(await list('sesn_3', ['--dry-run'])).toMatchObject({ code: 0 })
  expect(ids()).toEqual(['sesn_1'])
  writeFileSync(join(folder, 'sessions'), 'sesn_4\n$(touch pwned)\n\nsesn_5')
  await list('sesn_6')
  expect(ids()).toEqual(['sesn_6', 'sesn_4', 'sesn_5'])
})

test('the file of recent sessions stays valid if several processes write it at the same time', async () => {
  const { listApart, ids, folder } = await createHome()
  const all = Array.from({ length: 3 }, (_, i) => `sesn_${i}_${'x'.repeat(100)}`)
  for (const ended of await Promise.all(all.map(listApart))) expect(ended).toMatchObject({ code: 0 })
  expect(ids().length).toBeGreaterThan(0)
  expect(all).toEqual(expect.arrayContaining(ids()))
  expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).toEqual([])
})
