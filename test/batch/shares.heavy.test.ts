import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { childEnvironment } from '../harness/environment.ts'
import { binary } from '../harness/process.ts'
import { credentials } from '../harness/run.ts'
import { answer, idsIn, prepare } from './served.ts'

const shares = (cwd: string, env: Record<string, string>, how: string) =>
  promisify(execFile)('bash', ['-euo', 'pipefail', '-c', how], {
    cwd,
    env: {
      ...childEnvironment,
      HOME: cwd,
      ...credentials,
      ...env,
      NODE: process.execPath,
      PARLEY: binary,
    },
  })

const share =
  'split -n r/$I/4 in.ndjson | "$NODE" "$PARLEY" chat -q --batch - --results share-$I.ndjson --resume >/dev/null'

test('shares from GNU split request every line once (needs GNU split)', async () => {
  const { cwd, env, server } = await prepare(41, (socket) => void socket.write(answer))
  await shares(cwd, env, `for I in 1 2 3 4; do ${share} & done; wait`)
  // Each share is resumed separately and has nothing left to do.
  await shares(cwd, env, `for I in 1 2 3 4; do ${share}; done; cat share-*.ndjson > all.ndjson`)
  const ids = idsIn(readFileSync(join(cwd, 'all.ndjson'), 'utf8')).sort((one, other) => one - other)
  expect([ids, server.requests.length]).toEqual([Array.from({ length: 41 }, (_, at) => at + 1), 41])
})

test('shares from GNU parallel request every line once (needs parallel)', async () => {
  const { cwd, env, server } = await prepare(41, (socket) => void socket.write(answer))
  await shares(cwd, env, `parallel -j4 'I={}; ${share}' ::: 1 2 3 4; cat share-*.ndjson > all.ndjson`)
  expect(server.requests.length).toBe(41)
  expect(existsSync(join(cwd, 'all.ndjson'))).toBe(true)
  expect(new Set(idsIn(readFileSync(join(cwd, 'all.ndjson'), 'utf8'))).size).toBe(41)
})
