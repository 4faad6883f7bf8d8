import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { realTimers } from '../../src/timers.ts'
import { ownerOnlyMode, parseLines, run, temporaryFolder } from '../harness/run.ts'

let home: string
let file: string
beforeEach(() => {
  home = temporaryFolder()
  file = join(home, 'cache/parley/demo-sessions.json')
  mkdirSync(join(home, 'cache'))
})

/** Each call has a new context, as a new process would, and shares only the files of `home`. */
const parley = (argv: string[], world: object = {}) =>
  run([...argv, '--profile', 'demo'], {
    cwd: home,
    exchange: 'network',
    env: { XDG_CACHE_HOME: join(home, 'cache'), LOCALAPPDATA: join(home, 'cache') },
    ...world,
  })
const send = (text: string, session = 'sesn_1', world = {}) =>
  parley(['events', 'send', '--follow', '-s', session, '--message', text], world)
const list = async (session = 'sesn_1') =>
  parseLines((await parley(['events', 'list', '-s', session, '--raw'])).out)

test.each([
  ['chat', 'x'],
  ['image', 'x'],
  ['events', 'send', 'x', '-s', 'sesn_1'],
])('the demo profile sends nothing after the deadline: %s', async (...argv) => {
  let now = 0
  const timers = { ...realTimers, now: () => (now += 100) }
  const ended = await parley([...argv, '--deadline', '1ms'], { timers })
  expect(ended).toMatchObject({ code: 9, out: '', err: 'parley: the deadline passed\n  nothing was sent\n' })
})

test('the printed confirm command continues a demo session in a later process', async () => {
  const sent = await send('use bash {"command":"ls"}\nthen use deploy {}')
  expect(sent).toMatchObject({ code: 12, err: expect.stringContaining('--profile demo') })
  const confirm = () => parley(['events', 'confirm', '-s', 'sesn_1', '--pending', '--allow', '--follow'])
  expect(await confirm()).toMatchObject({ code: 12, out: expect.stringContaining('deploy {}') })
  expect(await confirm()).toMatchObject({ code: 0, out: expect.stringContaining('is done') })
  expect(statSync(file).mode & 0o777).toBe(ownerOnlyMode)
  const events = await list()
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
  expect(events.at(-1)).toMatchObject({ stop_reason: { type: 'end_turn' } })
  expect(events.findLast(({ type }) => type === 'session.usage').usage.output_tokens).toBeGreaterThan(20)
})

test("W32: concurrent processes do not lose each other's events of demo sessions", async () => {
  const names = Array.from({ length: 6 }, (_, index) => `word-${index}`)
  const ended = await Promise.all(
    names.flatMap((name) => [send(name, name), parley(['events', 'send', name, '-s', 'shared'])]),
  )
  expect(ended.map(({ code }) => code)).toEqual(ended.map(() => 0))
  for (const name of names) expect(JSON.stringify(await list(name))).toContain(name)
  const shared = (await list('shared')).filter(({ type }) => type === 'user.message')
  expect(shared.map(({ content }) => content[0].text).sort()).toEqual(names)
  expect(readdirSync(join(home, 'cache/parley')).filter((name) => /lock|part/.test(name))).toEqual([])
})

test.each([
  ['cut off', '{"version":1,"sessions":[{"id"'],
  ['of another version', '{"version":1,"sessions":[{"id":"sesn_1"}]}'],
  ['null', 'null'],
])('W31: demo sessions start anew with a note if their file is %s', async (_, text) => {
  await send('hello')
  writeFileSync(file, text)
  const { code, err } = await send('hello again')
  expect(code).toBe(0)
  expect(err).toContain('it is damaged or from another version, so the demo starts with new sessions')
  expect(JSON.stringify(await list())).toMatch(/^(?!.*“hello”).*“hello again”/)
})

test('W33: if demo sessions cannot be saved, they end with the process, and parley prints one warning', async () => {
  const nowhere = { env: { XDG_CACHE_HOME: '', HOME: '', LOCALAPPDATA: '' } }
  const ended = await send('use a tool', 's', nowhere)
  expect(ended.code).toBe(12)
  expect(ended.err.match(/sessions are lost when this process ends: no safe cache folder/g)).toHaveLength(1)
  expect((await parley(['events', 'list', '-s', 's'], nowhere)).out).toBe('')
  writeFileSync(join(home, 'cache/parley'), 'a file')
  expect(await send('hello')).toMatchObject({ code: 0, err: expect.stringContaining('no safe cache folder') })
})

test('with the demo profile, only a command that sends something prints that the emulator answers', async () => {
  const reminder = /answers come from the built-in emulator/g
  expect((await send('hello')).err.match(reminder)).toHaveLength(1)
  expect((await parley(['chat', 'hello'])).err.match(reminder)).toHaveLength(1)
  for (const line of ['events list -s sesn_1', 'sessions list'])
    expect((await parley(line.split(' '))).err).not.toMatch(reminder)
})

test('the demo has the session sesn_1, and prints a note about an unknown session', async () => {
  expect((await parley(['sessions', 'list'])).out).toMatch(/^sesn_1\t/)
  expect((await parley(['sessions', 'show', 'sesn_1'])).err).toBe('')
  const typo = await parley(['sessions', 'show', 'sesn_l'])
  expect(typo.err).toBe('parley: the demo profile: the session sesn_l did not exist, so it begins empty\n')
})
