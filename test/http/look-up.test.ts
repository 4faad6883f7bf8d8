import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canRun, execute } from '../harness/process.ts'
import { temporaryFolder } from '../harness/run.ts'

const preload = join(import.meta.dirname, '../faults/preload.cjs')

test('a look-up that was given up does not keep the process (needs process.execve and FIFOs)', async () => {
  const cwd = temporaryFolder()
  const fifo = join(cwd, 'fifo')
  expect(canRun('mkfifo', fifo)).toBe(true)
  const env = {
    NODE_OPTIONS: `--require ${JSON.stringify(preload)}`,
    TEST_FIFO: fifo,
    PARLEY_BASE_URL: 'https://stuck.test',
  }
  const argv = [
    'chat',
    'hi',
    '--no-stdin',
    '--connect-timeout',
    '0.1',
    '--retries',
    '0',
    '--report',
    'r.json',
  ]
  expect(await execute(argv, { cwd, env })).toEqual({
    code: 9,
    signal: null,
    out: '',
    err: expect.stringMatching(/^parley: stuck.test: no connection within 0.1 s\n {2}nothing was sent\n$/),
  })
})
