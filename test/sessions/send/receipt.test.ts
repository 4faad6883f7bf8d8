import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { CliError } from '../../../src/errors.ts'
import { addIdsFromReceipt, parseSentEvents, readReceipt } from '../../../src/sessions/sending/receipt.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { run } from '../../harness/run.ts'
import { createFailingStdout } from '../../harness/stdout.ts'

interface Response {
  body: string
  /** Content type. If omitted, the response has no content type. */
  type?: string
  /** Error that cuts the body. */
  cut?: Error
}

const reset = new CliError('response', 'the connection was reset')

async function* streamBody({ body, cut }: Response) {
  if (body !== '') yield Buffer.from(body)
  if (cut) throw cut
}

function respondWith(response: Response): Exchange {
  const headers: Record<string, string> = {}
  if (response.type !== undefined) headers['content-type'] = response.type
  return async () => ({ status: 202, statusText: '', headers, body: streamBody(response), close() {} })
}

const send = (response: Response, ...more: string[]) =>
  run(['events', 'send', 'x', '-s', 's', ...more], { exchange: respondWith(response) })

const none = 'parley: the events were accepted, but the response does not list them\n'

const listed = '{"data":[{"id":"e1","type":"user.message"}]}'
test.each<[what: string, response: Response, out: string, note: string]>([
  ['a list of events without a content type', { body: listed }, 'e1\tuser.message\t\t\n', ''],
  ['an object whose field data is null', { body: '{"data":null}' }, '', none],
  ['an empty object', { body: '{}' }, '', none],
  ['an empty body', { body: '' }, '', none],
  ['a blank HTML body', { body: ' \n', type: 'text/html' }, '', none],
])('events send accepts %s as the response', async (_, response, out, note) => {
  expect(await send(response)).toMatchObject({ code: 0, out, err: note })
})

test.each([
  ['one event', [{ id: 'e1', type: 'user.interrupt' }], 1],
  ['an error', [{ type: 'error' }], 2],
  ['both events in another order', [{ type: 'user.message' }, { type: 'user.interrupt' }], undefined],
])('events send warns about sent events that the response with %s omits', async (_, data, missing) => {
  const ended = await send({ body: JSON.stringify({ data }) }, '--interrupt', '-q')
  const warning = `parley: the response does not list ${missing} of the sent events: check with 'parley events list -s s'\n`
  expect(ended).toMatchObject({ code: 0, err: missing === undefined ? '' : warning })
})

const accepted = 'the event was accepted (202), but the response to it'
const other = 'the response (202) does not list the accepted events: it'
const incomplete = 'is incomplete: the connection was reset'

const isNotJson = 'is not JSON'
const shape = 'has another shape than documented: data'
const page = '<title>Sign in</title>'
const hasOther = `${accepted} ${shape}`
const isCut = `${accepted} ${incomplete}`
const twoProblems = `${hasOther}[0]: must be an object; data[1].type: must be text`
test.each<[what: string, response: Response, message: string, body?: unknown]>([
  ['a list of events that is cut', { body: '{"data":[{"id":', cut: reset }, isCut],
  ['a cut empty body', { body: '', type: 'application/json', cut: reset }, `${other} ${incomplete}`, ''],
  ['a text that is cut', { body: 'w', cut: reset }, `${other} ${incomplete}: w`, 'w'],
  ['a text that begins like a list of events', { body: '{"data":[{' }, `${accepted} ${isNotJson}`],
  ['a text that begins like a list with blanks', { body: '\n { "data" : [ ' }, `${accepted} ${isNotJson}`],
  ['a list with an event without a type', { body: '{"data":[{}]}' }, `${hasOther}[0].type: is missing`],
  ['a list of two invalid events', { body: '{"data":[1,{"type":5}]}' }, twoProblems],
  ['an object with number data', { body: '{"data":5}' }, `${other} ${shape}: must be a list`, { data: 5 }],
  ['a text that contains a list', { body: 'x{"data":[' }, `${other} ${isNotJson}: x{"data":[`, 'x{"data":['],
  ['a login page', { body: page }, `${other} ${isNotJson}: Sign in`, page],
  [
    'a list of events with an error',
    { body: '{"data":[],"error":"no"}' },
    'the service answered with an error in a successful response: no',
    { data: [], error: 'no' },
  ],
])('events send exits with 8 if the response is %s', async (_, response, message, body) => {
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
    retry: isAccepted ? 'never' : 'look-first',
    attempts: 1,
    session: 's',
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
  const exchange = respondWith({ body: '{"data":[{"id":"e1","type":"x"},{"id":"e 2","type":"x"}]}' })
  const world = { exchange, stdout: createFailingStdout(0, 'ENOSPC') }
  const { code, err } = await run(['events', 'send', 'x', '-s', 's', '--errors', 'json'], world)
  expect(code).toBe(11)
  const hint = 'the event was accepted, only the output failed; ids: e1, "e 2"'
  expect(JSON.parse(err).error.hints).toEqual([hint])
})

test('events send exits with 1 and prints the bug location if reading a response throws a TypeError', async () => {
  const { code, err } = await send({ body: '{"data":[', cut: new TypeError('x') })
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining('TypeError at receipt.test.ts:') })
})

/** Reads a receipt. Returns what `readReceipt` printed and reported, in order, and its failure. */
async function read(response: Response, flags: { raw?: boolean } = {}) {
  const steps: string[] = []
  const output = { isTerminal: false, write: async (text: unknown) => void steps.push(`out ${text}`) }
  const context = { flags, output } as unknown as Context
  const { status, headers, body } = await respondWith(response)({ method: 'GET', url: '', headers: {} })
  const accept = () => steps.push('accept')
  const readable = { status, headers, body, accept } as unknown as Parameters<typeof readReceipt>[1]
  const onAccepted = () => steps.push('accepted')
  const read = readReceipt(context, readable, { isPrinted: true, onAccepted })
  return { steps, failure: await read.catch((error: CliError) => error) }
}

test('events send records the acceptance of the events before it does anything that can fail', async () => {
  expect((await read({ body: '{"data":[{}]}' })).steps).toEqual(['accept', 'accepted'])
  expect((await read({ body: '' })).steps).toEqual(['accept', 'accepted'])
  expect((await read({ body: '{"data":5}' })).steps).toEqual([])
})

test('events send reports a passed deadline if the deadline cut the response', async () => {
  const late = reset.with({ deadline: true })
  for (const body of ['{"data":[', 'w'])
    expect((await read({ body, cut: late })).failure).toMatchObject({ details: { deadline: true } })
})

const sent = [{ type: 'user.message', content: 'a' }, { type: 'user.interrupt' }]
const first = { id: 'e1', type: 'user.message' }
const second = { id: 'e2', type: 'user.interrupt' }

test.each<[which: string, receipt: { id?: string; type: string }[], expected: object[]]>([
  ['sent events with the ids of the response', [first, second], [{ ...sent[0], id: 'e1' }, second]],
  ['events of the response if a type differs', [first, first], [first, first]],
  ['events of the response if the response has one event less', [first], [first]],
  ['events of the response if it has one event more', [first, second, first], [first, second, first]],
  ['events of the response if an event has an id', [{ type: 'x' }, second], [{ type: 'x' }, second]],
  ['sent events if the response has no events', [], sent],
  ['sent events if the response has different events without ids', [{ type: 'x' }], sent],
])('after events are sent, parley searches for the %s', (_, receipt, expected) => {
  expect(addIdsFromReceipt(sent, receipt)).toEqual(expected)
})

test.each<[body: object, events: object[]]>([
  [{ events: [...sent, 'x', { id: 'e1' }] }, sent],
  [{ events: { type: 'x' } }, []],
  [{}, []],
])('the events of the sent body %j are %j', (body, events) => {
  expect(parseSentEvents(Buffer.from(JSON.stringify(body)))).toEqual(events)
})
