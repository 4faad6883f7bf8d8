import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { CliError } from '../../../src/errors.ts'
import { readReceipt } from '../../../src/sessions/sending/receipt.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { run } from '../../harness/run.ts'
import { createFailingStdout } from '../../harness/stdout.ts'

interface Response {
  body: string
  /** Content type. If omitted, the response has none. */
  type?: string
  /** Reason why the body is cut. */
  cut?: Error
}

const reset = new CliError('response', 'the connection was reset')

async function* streamBody({ body, cut }: Response) {
  if (body !== '') yield Buffer.from(body)
  if (cut) throw cut
}

function responding(response: Response): Exchange {
  const headers: Record<string, string> = {}
  if (response.type !== undefined) headers['content-type'] = response.type
  return async () => ({ status: 202, statusText: '', headers, body: streamBody(response), close() {} })
}

const send = (response: Response, ...more: string[]) =>
  run(['events', 'send', 'x', '-s', 's', ...more], { exchange: responding(response) })

const none = 'parley: the events were accepted, but the response does not list them\n'

test.each<[body: string, type: string | undefined, out: string, note: string]>([
  ['{"data":[{"id":"e1","type":"user.message"}]}', undefined, 'e1\tuser.message\t\t\n', ''],
  ['{"data":null}', undefined, '', none],
  ['{}', undefined, '', none],
  ['', undefined, '', none],
  [' \n', 'text/html', '', none],
])('events send accepts the response %j of type %s', async (body, type, out, note) => {
  const ended = await send({ body, ...(type === undefined ? {} : { type }) })
  expect(ended).toMatchObject({ code: 0, out, err: note })
})

const accepted = 'the event was accepted (202), but the response to it'
const other = 'the response (202) does not list the accepted events: it'

test.each<[response: Response, message: string, body?: unknown]>([
  [{ body: '{"data":[{"id":', cut: reset }, `${accepted} is incomplete: the connection was reset`],
  // Empty bodies with a content length.
  ...['application/json', 'text/json; x', 'application/problem+JSON', undefined].flatMap(
    (type): [Response, string][] =>
      ['', ' \n'].map((body) => [
        { body, cut: reset, ...(type === undefined ? {} : { type }) },
        `${accepted} is incomplete: the connection was reset`,
      ]),
  ),
  [{ body: '', type: 'text/jsonx', cut: reset }, `${other} is incomplete: the connection was reset`, ''],
  [{ body: 'w', cut: reset }, `${other} is incomplete: the connection was reset: w`, 'w'],
  // A text that starts like an acknowledgment counts as one.
  [{ body: '{"data":[{' }, `${accepted} is not JSON`],
  [{ body: '\n { "data" : [ ' }, `${accepted} is not JSON`],
  [{ body: '{"data":[{}]}' }, `${accepted} has another shape than documented: data[0].type: is missing`],
  [
    { body: '{"data":[1,{"type":5}]}' },
    `${accepted} has another shape than documented: data[0]: must be an object; data[1].type: must be text`,
  ],
  [{ body: '{"data":5}' }, `${other} has another shape than documented: data: must be a list`, { data: 5 }],
  [{ body: 'x{"data":[' }, `${other} is not JSON: x{"data":[`, 'x{"data":['],
  [{ body: '<title>Sign in</title>' }, `${other} is not JSON: Sign in`, '<title>Sign in</title>'],
  [
    { body: '{"data":[],"error":"no"}' },
    'the service answered 202 with an error: no',
    { data: [], error: 'no' },
  ],
])('events send exits with 8 for the response %j: %s', async (response, message, body) => {
  const isAccepted = message.startsWith(accepted)
  const { code, out, err } = await send(response, '--errors', 'json')
  expect([code, out]).toEqual([8, ''])
  expect(JSON.parse(err).error).toEqual({
    format: 1,
    kind: 'response',
    exit: 8,
    status: 202,
    message,
    sent: isAccepted ? 'yes' : 'unknown',
    safeToRetry: false,
    retry: 'look-first',
    attempts: 1,
    hints: [
      isAccepted
        ? 'do not send it again'
        : "the event may have been accepted: check with 'parley events list -s s' before sending again",
      ...(typeof body === 'string' && body.startsWith('<')
        ? ['the URL was https://agents.test/v1/sessions/s/events, from agentsUrl (PARLEY_AGENTS_URL)']
        : []),
    ],
    ...(isAccepted ? {} : { body }),
  })
  expect((await send(response)).err.includes('  do not send it again\n')).toBe(isAccepted)
})

test('events send reports the ids of accepted events that it cannot print', async () => {
  const exchange = responding({
    body: '{"data":[{"id":"e1","type":"user.message"},{"id":"e 2","type":"x"}]}',
  })
  const world = { exchange, stdout: createFailingStdout(0, 'ENOSPC') }
  const { code, err } = await run(['events', 'send', 'x', '-s', 's', '--errors', 'json'], world)
  expect(code).toBe(11)
  expect(JSON.parse(err).error.hints).toEqual([
    'the event was accepted, only the output failed; ids: e1, "e 2"',
  ])
})

test('events send reports a bug during the read of a response as a bug', async () => {
  const { code, err } = await send({ body: '{"data":[', cut: new TypeError('x') })
  expect(code).toBe(1)
  expect(err).toContain('TypeError at receipt.test.ts:')
})

/** Returns the steps of events send in order, and its failure. */
async function read(response: Response, flags: { raw?: boolean } = {}) {
  const steps: string[] = []
  const output = { isTerminal: false, write: async (text: unknown) => void steps.push(`out ${text}`) }
  const context = { flags, output } as unknown as Context
  const { status, headers, body } = await responding(response)({ method: 'GET', url: '', headers: {} })
  const accept = () => steps.push('accept')
  const readable = { status, headers, body, accept } as unknown as Parameters<typeof readReceipt>[1]
  const onAccepted = () => steps.push('accepted')
  const failure = await readReceipt(context, readable, { isPrinted: true, onAccepted }).catch(
    (error: CliError) => error,
  )
  return { steps, failure }
}

test('events send records that the events were accepted before a later step can fail', async () => {
  expect((await read({ body: '{"data":[{}]}' })).steps).toEqual(['accept', 'accepted'])
  expect((await read({ body: '' })).steps).toEqual(['accept', 'accepted'])
  expect((await read({ body: '{"data":5}' })).steps).toEqual([])
})

test('events send names the deadline if it cuts the response', async () => {
  const late = reset.with({ deadline: true })
  for (const body of ['{"data":[', 'w'])
    expect((await read({ body, cut: late })).failure).toMatchObject({ details: { deadline: true } })
})
