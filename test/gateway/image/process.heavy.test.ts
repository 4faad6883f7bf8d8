import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { canRun, execute, preloading } from '../../harness/process.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { envFor, response, type ScriptedServer, serve } from '../../harness/server.ts'
import { imageAnswer, inline, png } from './image.ts'

let server: ScriptedServer
let cwd: string
let body: string
beforeEach(async () => {
  cwd = temporaryFolder()
  body = imageAnswer(inline(png()))
  server = await serve((socket) => socket.write(response(body)))
})
afterEach(() => server.close())

type ProcessOptions = Parameters<typeof execute>[1]

/** Runs the built `parley image` in the test's folder, with a new temporary folder. */
async function image(argv: string[], world: ProcessOptions = {}) {
  const temporary = temporaryFolder()
  const env = { TMPDIR: temporary, ...envFor(server), ...world.env }
  const ended = await execute(['image', '-m', 'm', '--no-stdin', ...argv], { cwd, ...world, env })
  const saved = readdirSync(temporary).map((name) => join(temporary, name))
  return { ...ended, saved, files: readdirSync(cwd).sort() }
}

/** Sends a signal to the process before it writes its nth image, and blocks the write for some time. */
const signalAtWrite = (number: number, signal: string) =>
  preloading(`
    const files = require('node:fs')
    const { writeFileSync } = files
    let count = 0
    files.writeFileSync = (...given) => {
      if (++count === ${number}) process.kill(process.pid, '${signal}')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
      writeFileSync(...given)
    }`)

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'])(
  'G02: after %s, image completes a file, prints its path and ends (needs signals)',
  async (signal) => {
    const ended = await image(['x'], { env: signalAtWrite(1, signal) })
    expect(ended).toMatchObject({ code: null, signal, files: ['x.png'], saved: [], out: 'x.png\n' })
    expect(readFileSync(join(cwd, 'x.png'))).toEqual(png())
  },
)

test('G06: after SIGINT during the write of the second of four images, image saves two images and prints their paths (needs signals)', async () => {
  body = imageAnswer(...[1, 2, 3, 4].map((shade) => inline(png(shade))))
  const ended = await image(['x'], { env: signalAtWrite(2, 'SIGINT') })
  expect(ended).toMatchObject({ signal: 'SIGINT', out: 'x.png\nx-2.png\n', files: ['x-2.png', 'x.png'] })
  expect(readFileSync(join(cwd, 'x-2.png'))).toEqual(png(2))
})

test('I04: image -o FIFO exits with 11 before sending, and does not wait for a reader of the FIFO (needs FIFOs)', async () => {
  canRun('mkfifo', join(cwd, 'pipe.png'))
  expect(await image(['x', '-o', 'pipe.png', '--force'])).toMatchObject({ code: 11, files: ['pipe.png'] })
  expect(server.requests).toHaveLength(0)
})

test('I05: image into an unwritable folder exits with 11 before sending (needs another user)', async () => {
  mkdirSync(join(cwd, 'locked'), { mode: 0o555 })
  chmodSync(cwd, 0o755)
  for (const path of ['locked/a.png', 'locked/', 'locked/deeper/']) {
    const ended = await image(['x', '-o', path], { isNobody: true })
    expect(ended).toMatchObject({ code: 11, out: '', files: ['locked'] })
    expect(ended.err).toContain('permission denied')
  }
  expect(server.requests).toHaveLength(0)
})
