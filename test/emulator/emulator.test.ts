import { describe, expect, test } from 'vitest'
import { createEmulator, type EmulatorOptions, faultEndpoints } from '../../src/emulator/emulator.ts'
import { parseFaults } from '../../src/emulator/faults.ts'
import { type HttpRequest, readBody } from '../../src/wire/exchange.ts'
import { run } from '../harness/run.ts'

const events = '/v1/sessions/sesn_1/events'
const chat = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const json = { 'content-type': 'application/json', 'x-api-key': 'k', authorization: 'Bearer t' }
const prompt = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

/** Starts an emulator and returns a client in the same process. */
function emulate(options: EmulatorOptions = {}) {
  const exchange = createEmulator(options)
  const send = (method: string, path: string, body?: string | Uint8Array, headers: object = {}) => {
    const request: HttpRequest = { method, url: `http://emulator${path}`, headers: { ...json, ...headers } }
    return exchange(body === undefined ? request : { ...request, body: Buffer.from(body as string) })
  }
  return {
    send,
    async ask(...request: Parameters<typeof send>) {
      const { status, headers, body } = await send(...request)
      return { status, headers, text: Buffer.from(await readBody(body)).toString() }
    },
    /** Reads a stream until a text arrives. Calls `meanwhile` after opening it. */
    async watch(path: string, until: string | RegExp, meanwhile?: () => unknown) {
      const { body, close } = await send('GET', path)
      let text = ''
      await meanwhile?.()
      for await (const chunk of body) {
        text += Buffer.from(chunk).toString()
        if (text.search(until) >= 0) break
      }
      close()
      return text
    },
  }
}

describe('documented behavior of the services', () => {
  test.each([
    ['GET', '/nowhere', 404],
    ['DELETE', events, 404],
    ['POST', chat, 400],
  ])('W24: an emulated error has its request id in body and header: %s %s', async (method, path, code) => {
    const { status, headers, text } = await emulate().ask(method, path, '[]')
    expect(status).toBe(code)
    expect(JSON.parse(text)).toMatchObject({ type: 'error', request_id: headers['request-id'] })
    expect(headers['request-id']).toMatch(/^req_\w+$/)
  })

  test.each(['Bearer', 'bearer'])(
    'W28: the emulator ignores the case of the authentication scheme: %s',
    async (scheme) => {
      const { ask } = emulate({ credentials: { accessToken: 't' } })
      expect((await ask('POST', chat, prompt, { authorization: `${scheme} t` })).status).toBe(200)
      expect((await ask('POST', chat, prompt, { authorization: `${scheme} T` })).status).toBe(401)
    },
  )

  test.each([
    ['POST', '/alpha_cli/v1beta/models/alpha-2.5-pro%3AgenerateContent', 200],
    ['GET', '/v1/sessions/sesn%5F1/events', 200],
    ['GET', '/v1/sessions%2Fsesn_1/events', 404],
  ])('W29: the emulator decodes percent-encoded paths: %s %s', async (method, path, code) => {
    expect((await emulate().ask(method, path, method === 'POST' ? prompt : undefined)).status).toBe(code)
  })

  const times = (text: string, count = 130_000) => Array(count).fill(text).join(',')
  test.each([
    ['130,000 wrong events', events, `{"events":[${times('{"type":"user.mesage"}')}]}`],
    ['130,000 wrong turns', chat, `{"contents":[${times('5')}]}`],
    [
      '20,000 levels',
      events,
      `{"events":[{"type":"user.interrupt","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}]}`,
    ],
    ['an event named __proto__', events, '{"events":[{"type":"__proto__"}]}'],
  ])('W30: the emulator explains a 400 in less than 10,000 characters: %s', async (_, path, body) => {
    const { status, text } = await emulate().ask('POST', path, body)
    expect(status).toBe(400)
    expect(text.length).toBeLessThan(10_000)
  })
})

test.each([['query'], ['body']])(
  'serve --fault cut cuts a stream within its text, also with --stream-via %s',
  async (via) => {
    const argv = ['chat', 'Say hello', '--stream', '--stream-via', via]
    const whole = await run(argv, { exchange: createEmulator({}) })
    const exchange = createEmulator({ faults: parseFaults(['chat:cutx1'], faultEndpoints) })
    const ended = await run(argv, { exchange })
    expect(ended.code).toBe(8)
    expect(ended.out).toMatch(/^Hello from/)
    expect(ended.out.length).toBeLessThan(whole.out.length)
    expect(whole.out.startsWith(ended.out.trimEnd())).toBe(true)
  },
)
