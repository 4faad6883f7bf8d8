import { expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'

const xml = '<?xml version="1.0"?><Error><Message>Please wait</Message><RequestId>rq9</RequestId></Error>'

/** Known forms of an error body, with the message that parley prints. */
const shapes = [
  ['R70', '{"code":40101,"msg":"bad key"}', 'bad key'],
  ['R71', '{"message":"no such route"}', 'no such route'],
  ['R72', '{"Message":"not authorised"}', 'not authorised'],
  ['R73', '{"detail":"Not Found"}', 'Not Found'],
  ['R74', '{"detail":[{"loc":["body",0],"msg":"needed"},{"msg":"and more"}]}', 'body.0: needed; and more'],
  ['R75', '{"errors":[{"message":"first"},{"message":"second"}]}', 'first; second'],
  ['R76', '{"error":"invalid_token","error_description":"it has expired"}', 'invalid_token: it has expired'],
  ['R77', '{"fault":{"faultstring":"Quota","detail":{"errorcode":"policies.q"}}}', 'Quota'],
  ['R78', xml, 'Please wait'],
  ['R79', 'event: error\ndata: {"type":"error","error":{"message":"in a stream"}}\n\n', 'in a stream'],
  ['R80', JSON.stringify({ error: { message: '{"error":{"message":"inside"}}' } }), 'inside'],
  ['R81', '{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}', 'bad'],
  ['R82', '{"type":"about:blank","title":"Nope","status":403,"detail":"not today"}', 'Nope: not today'],
  ['R83', '{"type":"invalid_request_error","message":"bare"}', 'bare'],
  ['R84', '{"error":{"error":{"message":"deep"}}}', 'deep'],
] as const

const endpoints = [
  ['chat', ['chat', 'x', '--retries', '0']],
  ['image', ['image', 'x', '-m', 'm', '--retries', '0']],
  ['events send', ['events', 'send', 'x', '-s', 's', '--retries', '0']],
  ['events list', ['events', 'list', '-s', 's', '--retries', '0']],
] as const

// The commands read an error body in the same way, so one form is enough for the other commands.
const cases = [
  ...shapes.map((shape) => [...shape, ...endpoints[0]] as const),
  ...endpoints.slice(1).map((endpoint) => [...shapes[0], ...endpoint] as const),
]

test.each(cases)(
  '%s: the error body %j has the message "%s" in %s, and a 200 with this body is a failure, too',
  async (_, body, expectedText, __, argv) => {
    const refused = await run([...argv], { exchange: answering(body, { status: 400 }) })
    expect(refused).toMatchObject({ code: 4, out: '' })
    expect(refused.err).toContain(`the service says: ${expectedText}\n`)
    const ended = await run([...argv], { exchange: answering(body) })
    expect(ended.code).toBeGreaterThan(2)
    expect(ended.out).toBe('')
    if (!body.startsWith('event:')) expect(ended.err).toContain(expectedText)
  },
)

test.each(endpoints.slice(0, 2))(
  'R87: %s prints the text of a 200 that is not an answer, and --errors json prints the body',
  async (_, argv) => {
    const exchange = answering('upstream connect error', { headers: { 'content-type': 'text/plain' } })
    expect((await run([...argv], { exchange })).err).toContain('the service says: upstream connect error\n')
    const { err } = await run([...argv, '--errors', 'json'], { exchange })
    expect(JSON.parse(err).error).toMatchObject({ exit: 8, body: 'upstream connect error' })
  },
)

test.each([
  ['the header request-id', '{}', { 'request-id': 'req_1' }],
  ['the header x-request-id', '{}', { 'x-request-id': 'req_1' }],
  ['the body', '{"type":"error","error":{"type":"x","message":"m"},"request_id":"req_1"}', {}],
  ['XML', xml.replace('rq9', 'req_1'), {}],
])('R88: parley prints the request id of a failure from %s', async (_, body, headers) => {
  for (const status of [400, 200]) {
    const ended = await run(['chat', 'x'], { exchange: answering(body, { status, headers }) })
    expect(ended.err).toMatch(/\n {2}request id: req_1\n$/)
  }
})

test.each([
  ['arrays', '['.repeat(5000) + ']'.repeat(5000)],
  ['objects', `${'{"error":'.repeat(5000)}"deep"${'}'.repeat(5000)}`],
  ['arrays in an error', `{"error":{"message":"m","details":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`],
  ['JSON in JSON', [...Array(12)].reduce<string>((text) => JSON.stringify({ message: text }), 'x')],
])('R90: parley reports no bug for an error body with deeply nested %s', async (_, body) => {
  for (const [, argv] of [endpoints[0], endpoints[2]]) {
    for (const status of [400, 200]) {
      for (const flags of [[], ['--errors', 'json']]) {
        const ended = await run([...argv, ...flags], { exchange: answering(body, { status }) })
        expect(ended.err).not.toContain('a bug')
        expect(ended.code).toBeGreaterThan(2)
        if (flags.length > 0) expect(() => JSON.parse(ended.err)).not.toThrow()
      }
    }
  }
})

test('R92: chat accepts an answer that also has a field "message"', async () => {
  const exchange = answering(message('Hi', { message: 'a note', code: 7 }))
  expect(await run(['chat', 'x'], { exchange })).toMatchObject({ code: 0, out: 'Hi\n' })
})
