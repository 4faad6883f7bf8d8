import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { start } from '../harness/process.ts'
import { temporaryFolder } from '../harness/run.ts'
import { findFreePort, serve } from '../harness/server.ts'
import { okOutput, okResponse, respondWith } from './answers.ts'
import { pause } from './launch.ts'

/**
 * Address of this machine's name on loopback. parley uses no proxy for localhost, and tinyproxy cannot
 * resolve invented names, so the test needs this name.
 */
const ownAddress = await lookup(hostname()).catch(() => undefined)

const isListening = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

/** Starts tinyproxy, and resolves when it listens. */
async function startTinyproxy(): Promise<{ port: number; log(): string }> {
  const port = await findFreePort()
  const folder = temporaryFolder()
  const [configuration, log] = [join(folder, 'tinyproxy.conf'), join(folder, 'log')]
  const lines = [
    `Port ${port}`,
    'Listen 127.0.0.1',
    'BasicAuth user pass',
    'LogLevel Connect',
    `LogFile "${log}"`,
  ]
  writeFileSync(configuration, `${lines.join('\n')}\n`)
  const child = spawn('tinyproxy', ['-d', '-c', configuration], { stdio: 'ignore' })
  onTestFinished(() => void child.kill())
  while (!(await isListening(port))) await pause(20)
  return { port, log: () => readFileSync(log, 'utf8') }
}

test('X01, X03: parley tunnels through tinyproxy and exits with 3 on a wrong password (needs tinyproxy and a name on loopback)', async () => {
  const proxy = await startTinyproxy()
  const server = await serve(respondWith(okResponse), { host: ownAddress?.address ?? '' })
  onTestFinished(() => server.close())
  const argv = ['chat', 'hi', '--allow-http', '--base-url', `http://${hostname()}:${server.port}`]
  const env = (credentials: string) => ({ HTTP_PROXY: `http://${credentials}127.0.0.1:${proxy.port}` })

  expect(await start(argv, { env: env('user:p%61ss@') }).ended).toMatchObject({ code: 0, out: okOutput })
  expect(proxy.log()).toContain(`CONNECT ${hostname()}:${server.port} HTTP/1.1`)
  expect(proxy.log()).not.toContain('canary')

  expect(await start(argv, { env: env('user:wrong@') }).ended).toMatchObject({ code: 3, out: '' })
  expect(server.requests).toHaveLength(1)
})
