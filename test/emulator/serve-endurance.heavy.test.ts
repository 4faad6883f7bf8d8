import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { readBody } from '../../src/wire/exchange.ts'
import { start } from '../harness/process.ts'

const path = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const body = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'
const headers = { authorization: 'Bearer t', 'content-type': 'application/json' }

async function serve(...argv: string[]) {
  const { child, ended } = start(['serve', '--access-token', 't', '--api-key', 't', ...argv])
  onTestFinished(() => void child.kill('SIGKILL'))
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer]
  return { child, ended, port: Number(new URL(JSON.parse(line.toString()).baseUrl).port) }
}

test('a complete answer of the emulator has a content length, a streamed answer has none', async () => {
  const ask = async (target: string, method = 'POST') =>
    createEmulator({})({ method, url: `http://emulator${target}`, headers, body: Buffer.from(body) })
  const whole = await ask(path)
  expect((await readBody(whole.body)).length).toBe(Number(whole.headers['content-length']))
  expect((await ask(`${path}?alt=sse`)).headers).not.toHaveProperty('content-length')
})

test('serve continues after the reader of its log has closed the pipe', async () => {
  const { port, child } = await serve()
  child.stderr?.destroy()
  for (let i = 0; i < 3; i++) {
    const socket = connect(port, '127.0.0.1')
    socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
    expect(String((await once(socket, 'data'))[0])).toContain('HTTP/1.1 401')
    socket.destroy()
  }
})
