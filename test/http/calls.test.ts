import { PassThrough, Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { ArraySet } from '../../src/array-set.ts'
import { createContext, type Host, type SharedFlags } from '../../src/context.ts'
import { Deadline } from '../../src/deadline.ts'
import { CliError } from '../../src/errors.ts'
import { createServiceCaller, type ServiceCaller } from '../../src/http/call.ts'
import { ReportData } from '../../src/report-data.ts'
import { Secrets } from '../../src/secrets.ts'
import { readSettings } from '../../src/settings/resolve.ts'
import { realTimers } from '../../src/timers.ts'
import { endpoints } from '../../src/wire/endpoints.ts'
import type { Exchange, HttpRequest } from '../../src/wire/exchange.ts'
import { createResponseError } from '../../src/wire/problem/problem.ts'
import { WorkTracker } from '../../src/work-tracker.ts'
import { childEnvironment } from '../harness/environment.ts'
import { answering, credentials, temporaryFolder } from '../harness/run.ts'
import { createSignal } from '../harness/session-service.ts'

/**
 * Starts a run. `exchange` gets the model of each call, by which a test chooses how the call ends. `spinners`
 * returns the number of spinners that are shown or pending.
 */
async function startRun(
  exchange: (model: string, onSent: () => void) => ReturnType<Exchange>,
  flags: Partial<SharedFlags> = {},
  stdin = '',
) {
  const cwd = temporaryFolder()
  const requests: HttpRequest[] = []
  const terminal = {
    isTerminal: true,
    columns: 80,
    open: () => new PassThrough() as never,
    writeSync: () => 0,
  }
  const cleanups = new ArraySet<() => unknown>()
  const nowhere = { isTerminal: false, open: () => new Readable() as never, writeSync: () => 0 }
  const host: Host = {
    env: { ...childEnvironment, HOME: cwd, ...credentials },
    cwd,
    platform: 'linux',
    uid: undefined,
    stdin: { kind: 'pipe', open: () => Readable.from([Buffer.from(stdin)]) },
    stdout: nowhere,
    stderr: flags.quiet === false ? terminal : nowhere,
    timers: realTimers,
    exchange(request, onSent = () => {}) {
      requests.push(request)
      return exchange(/models\/([^:/]+)/.exec(request.url)?.[1] ?? '', onSent)
    },
  }
  const context = await createContext(
    host,
    { given: [], quiet: true, settings: { retries: { value: '0', flag: '--retries' } }, ...flags },
    {
      deadline: new Deadline(host.timers),
      cleanups,
      secrets: new Secrets(),
      reportData: new ReportData(0),
      tracker: new WorkTracker(),
    },
  )
  const caller = createServiceCaller(context, await readSettings(context))
  const before = [...cleanups].length
  const spinners = () => [...cleanups].length - before
  return { caller, requests, spinners }
}

const call = (caller: ServiceCaller, model: string, read: () => Promise<string> = async () => model) =>
  caller
    .call(endpoints.chat, { params: { family: 'alpha', model }, body: Buffer.from('{}') }, read)
    .catch((error: unknown) => error as CliError)

test('each of several concurrent calls reports its own delivery, status and request id', async () => {
  const allAreSent = createSignal()
  const { caller, requests } = await startRun(async (model, onSent) => {
    if (model !== 'unconnected') onSent()
    if (requests.length === 5) allAreSent.trigger()
    await allAreSent.triggered
    if (model === 'unconnected') throw new CliError('not-sent', 'no route', { sent: 'no' })
    if (model === 'lost') throw new CliError('unknown', 'reset', { sent: 'unknown' })
    const status = model === 'denied' ? 403 : 200
    return answering('{}', { status, headers: { 'request-id': `req_${model}` } })({} as never)
  })
  const ended = await Promise.all([
    call(caller, 'fine'),
    call(caller, 'denied'),
    call(caller, 'lost'),
    call(caller, 'unconnected'),
    call(caller, 'strange', async () => {
      throw createResponseError('it is no answer').with({ sent: 'yes' })
    }),
  ])
  expect(requests).toHaveLength(5)
  expect(ended[0]).toBe('fine')
  expect(ended.slice(1).map((failure) => (failure as CliError).kind)).toEqual([
    'credentials',
    'unknown',
    'not-sent',
    'response',
  ])
  expect(ended.slice(1).map((failure) => (failure as CliError).details)).toEqual([
    expect.objectContaining({
      sent: 'yes',
      status: 403,
      requestId: 'req_denied',
      consequence: expect.stringContaining('the refused secret is from PARLEY_ACCESS_TOKEN'),
    }),
    expect.objectContaining({
      sent: 'unknown',
      consequence: 'the request was sent, but it is not known whether it was carried out',
    }),
    expect.objectContaining({ sent: 'no', retry: 'later', consequence: 'nothing was sent' }),
    expect.objectContaining({ sent: 'yes', status: 200, requestId: 'req_strange' }),
  ])
  expect((ended[2] as CliError).details.requestId).toBeUndefined()
})

test('the spinner stays on the terminal until the last of several concurrent calls ends', async () => {
  const answer = createSignal()
  const { caller, requests, spinners } = await startRun(
    async (model) => {
      if (model === 'slow') await answer.triggered
      return answering('{}')({} as never)
    },
    { quiet: false },
  )
  const slow = call(caller, 'slow')
  await expect.poll(() => requests.length).toBe(1)
  expect(spinners()).toBe(1)
  const parts = { params: { family: 'alpha', model: 'aside' }, isSingle: true }
  await caller.call(endpoints.chat, { ...parts, body: Buffer.from('{}') }, async () => {})
  expect(spinners()).toBe(1)
  answer.trigger()
  await slow
  expect(spinners()).toBe(0)
})

test('-H @- reads a header from stdin once, for all requests of a run', async () => {
  const { caller, requests } = await startRun(
    async () => answering('{}')({} as never),
    { header: ['@-'] },
    'X-Tenant: blue\n',
  )
  expect(await Promise.all([call(caller, 'a'), call(caller, 'b')])).toEqual(['a', 'b'])
  expect(await call(caller, 'c')).toBe('c')
  expect(requests.map(({ headers }) => headers['X-Tenant'])).toEqual(['blue', 'blue', 'blue'])
})
