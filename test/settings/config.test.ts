import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { answering, message, rejected, run, temporaryFolder } from '../harness/run.ts'
import { noSettings, token } from './profile-home.ts'

/** Creates an environment without credentials, and an isolated profile file. */
function world(content?: object) {
  const folder = temporaryFolder()
  const path = join(folder, 'config.json')
  if (content) writeFileSync(path, JSON.stringify(content), { mode: 0o600 })
  const env = { ...noSettings, PARLEY_AGENTS_URL: '', PARLEY_API_KEY: '', PARLEY_CONFIG_DIR: folder }
  const file = () => JSON.parse(readFileSync(path, 'utf8'))
  return { env, path, file, also: (more: Record<string, string>) => ({ env: { ...env, ...more } }) }
}

const work = { baseUrl: 'https://work.test', accessToken: token }

test.each([
  ['baseUrl', 'https://a.test/x/alpha_cli/v1beta/models/m:generateContent', 'https://a.test/x'],
  ['agentsUrl', 'https://a.test/v1/sessions/', 'https://a.test'],
])('config set refuses the %s %s with the path of a call, and suggests %s', async (name, typed, base) => {
  const ended = await run(['config', 'set', name, typed], { env: world().env })
  const why = `${name} must not contain the path of a request, which parley adds: use ${base}`
  expect(ended).toMatchObject(rejected(2, `parley: ${why}\n`))
})

test('events send sends an undocumented beta that config set --no-validate saved in the profile', async () => {
  const { env, also } = world()
  const set = ['config', 'set', '--no-validate', 'betas', 'managed-agents-2026-04-01,new-1']
  expect(await run(set, { env })).toMatchObject({ code: 0, err: '' })
  const agent = also({ PARLEY_AGENTS_URL: 'https://agents.test', PARLEY_API_KEY: 'canary-key-0123456789' })
  const { requests } = await run(['events', 'send', '-s', 's', 'x', '--beta', 'skills-2025-10-02'], agent)
  const sent = 'managed-agents-2026-04-01,new-1,skills-2025-10-02'
  expect(requests[0]?.headers).toMatchObject({ 'vendor-beta': sent })
})

test('config set, get and unset change one value', async () => {
  const { env, file } = world()
  const set = ['config', 'set', 'baseUrl', 'https://a.test']
  expect(await run(set, { env })).toMatchObject({ code: 0, out: '', err: '' })
  expect(file().profiles).toEqual({ default: { baseUrl: 'https://a.test' } })
  expect((await run(['config', 'get', 'baseUrl'], { env })).out).toBe('https://a.test\n')
  await run(['config', 'unset', 'baseUrl'], { env })
  expect(file().profiles).toEqual({ default: {} })
})

test.each([
  ['baseUrl', 'ftp://a', 'https://'],
  ['baseUrl', 'https://a?b=c', 'query'],
  ['timeout', 'soon', 'a duration such as 500ms, 10s, 2m or 1h; a bare number is seconds'],
  ['retries', '1.5', 'whole number'],
  ['stream', 'maybe', 'true or false (or yes, no, on, off, 1, 0)'],
  ['streamVia', 'tube', 'query or path or body'],
  ['betas', 'skills-2025-10-03', 'did you mean skills-2025-10-02?'],
  ['family', 'a/b', 'letters'],
  ['chatModel', '', 'must not be empty'],
])('config set rejects %s %j without saving it', async (key, value, expectedText) => {
  const { env } = world({ profiles: {} })
  expect(await run(['config', 'set', key, value], { env })).toMatchObject(rejected(2, expectedText))
})

const betas = ['skills-2025-10-02', 'compact-2026-09-04']
test.each([
  ['timeout', '2.5', 2.5, '2.5'],
  ['timeout', '1.5m', 90, '90'],
  ['stream', 'YES', true, 'true'],
  ['stream', 'No', false, 'false'],
  ['betas', betas.join(', '), betas, betas.join()],
])('P50: config set %s %s saves JSON, and config get prints text', async (key, value, saved, shown) => {
  const { env, file } = world()
  expect(await run(['config', 'set', key, value], { env })).toMatchObject({ code: 0, err: '' })
  expect(file()).toEqual({ version: 1, profiles: { default: { [key]: saved } } })
  expect((await run(['config', 'get', key], { env })).out).toBe(`${shown}\n`)
})

test('C25: config set accessTokenCommand removes accessToken, and config set accessToken removes accessTokenCommand, each with a note', async () => {
  const { env, file } = world({ profiles: { default: work } })
  const first = await run(['config', 'set', 'accessTokenCommand', 'pass show x'], { env })
  expect(first.err).toBe('parley: accessToken was removed: accessTokenCommand replaces it\n')
  expect((await run(['config', 'set', 'accessTokenCommand', 'pass show x'], { env })).err).toBe('')
  expect(file().profiles.default).toEqual({ baseUrl: work.baseUrl, accessTokenCommand: 'pass show x' })
  const second = await run(['config', 'set', 'accessToken'], { env, stdin: 'other-token\n' })
  expect(second.err).toBe('parley: accessTokenCommand was removed: accessToken replaces it\n')
  expect(file().profiles.default).toEqual({ baseUrl: work.baseUrl, accessToken: 'other-token' })
})

test('config set without a value prompts for a secret on a terminal', async () => {
  const { env, file } = world()
  const ended = await run(['config', 'set', 'apiKey'], { env, typed: 'key-1234\n' })
  expect(ended).toMatchObject({ code: 0, out: '', err: 'apiKey (not shown): \n' })
  expect(file().profiles.default.apiKey).toBe('key-1234')
  expect((await run(['config', 'set', 'apiKey'], { env, typed: '' })).code).toBe(2)
})

test.each([
  ['--profile tpyo', '', "parley: the profile 'tpyo', chosen by --profile, is new\n"],
  ['', 'tpyo', "parley: the profile 'tpyo', chosen by PARLEY_PROFILE, is new\n"],
  ['', 'default', ''],
])('config set %s with PARLEY_PROFILE=%s reports once that a profile is new', async (flags, name, note) => {
  const { also, file } = world({ profiles: { work } })
  const argv = `config set timeout 3 ${flags}`.trim().split(' ')
  const variables = also({ PARLEY_PROFILE: name })
  expect(await run(argv, variables)).toMatchObject({ code: 0, out: '', err: note })
  expect(file().profiles).toMatchObject({ work, [name || 'tpyo']: { timeout: 3 } })
  expect(await run(argv, variables)).toMatchObject({ code: 0, err: '' })
})

test('config uses the profile of --profile, then of PARLEY_PROFILE, then the current profile', async () => {
  const { env, file, also } = world()
  await run(['config', 'set', 'chatModel', 'a'], { env })
  await run(['config', 'set', 'chatModel', 'b'], also({ PARLEY_PROFILE: 'two' }))
  await run(['config', 'set', '--profile', 'three', 'chatModel', 'c'], also({ PARLEY_PROFILE: 'two' }))
  await run(['config', 'use', 'three'], { env })
  await run(['config', 'set', 'retries', '5'], { env })
  expect(file()).toEqual({
    version: 1,
    current: 'three',
    profiles: { default: { chatModel: 'a' }, two: { chatModel: 'b' }, three: { chatModel: 'c', retries: 5 } },
  })
  expect((await run(['config', 'profiles'], { env })).out).toBe('default\ntwo\nthree\ndemo\n')
  const marked = await run(['config', 'profiles'], { env, tty: ['stdout'] })
  expect(marked.out).toBe('  default\n  two\n* three\n  demo\n')
  expect((await run(['config', 'use', 'two'], also({ PARLEY_PROFILE: 'three' }))).err).toContain(
    'PARLEY_PROFILE (three) overrides the current profile',
  )
})

test('config delete prompts on a terminal and deletes only after yes', async () => {
  const { env, file } = world({ current: 'work', profiles: { default: {}, work } })
  const err = /Delete the profile 'work' and its secrets\? \[y\/N\] [\s\S]*parley: nothing was deleted\n/
  for (const typed of ['\n', 'n\n', ''])
    expect(await run(['config', 'delete', 'work'], { env, typed })).toMatchObject(rejected(0, err))
  expect(file().profiles).toHaveProperty('work')
  expect((await run(['config', 'delete', 'work'], { env, typed: 'y\n' })).code).toBe(0)
  expect(file().profiles).toEqual({ default: {} })
})

test.each([
  ['work', { work, default: {} }, 'work', "'default'"],
  ['work', { work }, 'work', "'default', which has no settings"],
  ['default', { default: work, work }, undefined, "'default', which has no settings"],
  ['other', { other: {}, work }, 'work', undefined],
  ['work', { work }, undefined, undefined],
])(
  'config delete %s with profiles %j, current %s reports the current profile as %s',
  async (name, profiles, current, reported) => {
    const { env } = world({ current, profiles })
    const { err } = await run(['config', 'delete', name, '--yes'], { env })
    const note = `parley: the current profile is ${reported}: 'parley config use NAME' selects another\n`
    expect(err).toBe(reported ? note : '')
    const listed = (await run(['config', 'list', '--effective'], { env })).out
    expect(listed).toContain(`profile\t${reported ? 'default' : (current ?? 'default')}\t`)
  },
)

test('config delete without a terminal needs --yes', async () => {
  const { env, file } = world({ profiles: { work } })
  const refused = await run(['config', 'delete', 'work'], { env, stdin: 'y\n' })
  const why = "prompts on a terminal, but stdin is not a terminal: add --yes to delete 'work'"
  expect(refused).toMatchObject(rejected(2, `parley: config delete ${why}\n`))
  expect(file().profiles).toEqual({ work })
  expect((await run(['config', 'delete', 'work', '--yes'], { env, stdin: '' })).code).toBe(0)
  expect(file().profiles).toEqual({})
})

const unknown = [
  'config use wrok',
  'config delete wrok',
  'config list --profile wrok',
  'chat x --profile wrok',
]
test.each(unknown)('parley exits with 3 and lists the profiles for an unknown name: %s', async (line) => {
  const { env } = world({ profiles: { work } })
  const problem =
    "unknown profile 'wrok' (did you mean work?): the profiles are work, demo. 'parley config init"
  expect(await run(line.split(' '), { env })).toMatchObject(rejected(3, problem))
})

test.each([
  ['use demo', 'the profile demo is built in and cannot be changed, deleted or made current;'],
  ['delete demo --yes', 'the profile demo is built in'],
  ['set --profile demo timeout 1', 'the profile demo is built in'],
  ['set --profile a/b timeout 1', 'a profile name has at most 64 letters, digits and'],
  ['set --profile= timeout 1', '--profile: the name of a profile is empty: is a variable unset?'],
])('C23: config %s exits with 2 and changes nothing', async (words, expectedText) => {
  const { env, path } = world({ profiles: {} })
  const before = readFileSync(path, 'utf8')
  expect(await run(['config', ...words.split(' ')], { env })).toMatchObject(rejected(2, expectedText))
  expect(readFileSync(path, 'utf8')).toBe(before)
})

const profiles = { default: { ...work, timeout: 7 }, other: { baseUrl: 'https://other.test' } }

test('config list --effective shows the last characters of the token, and the source of each value', async () => {
  const { also, path } = world({ profiles })
  const given = also({ PARLEY_ACCESS_TOKEN: 'env-token-2222', PARLEY_BASE_URL: 'https://env.test' })
  const ended = await run(['config', 'list', '--effective'], given)
  expect(ended.out.split('\n')).toEqual(
    expect.arrayContaining([
      `profile\tdefault\tdefault\t${path.replaceAll('\\', '\\\\')}`,
      'accessToken\t…2222\tPARLEY_ACCESS_TOKEN',
      'baseUrl\thttps://env.test\tPARLEY_BASE_URL',
      "timeout\t7\tprofile 'default'",
      'retries\t2\tdefault',
    ]),
  )
  expect(ended).toMatchObject({ code: 0, err: '' })
  const demo = await run(['config', 'list', '--effective', '--profile', 'demo'], also({}))
  expect(demo.out).toMatch(/^profile\tdemo\t--profile\tbuilt in$/m)
})

test('config init prompts for addresses, credentials and models, keeps a value on Enter, and sends nothing', async () => {
  const { env, file } = world({ profiles: { default: { baseUrl: 'https://old.test', extra: 1 } } })
  const typed = [
    // baseUrl; accessToken, rejected and prompted again; family; chatModel; imageModel
    ...['\n', 'canary token\r', 'canary-token-1\r', 'beta\n', 'm-1\n', '\n'],
    // agentsUrl, rejected and prompted again; apiKey; apiKeyCommand; agentsAuth; vendor; workspaceId
    ...['nonsense\n', 'https://agents.test/\n', '\r', 'pass show key\n', '\n', '\n', 'ws_1\n'],
  ]
  const ended = await run(['config', 'init'], { env, typed: typed.join('') })
  expect(ended).toMatchObject({ code: 0, out: '', requests: [] })
  expect(file().profiles.default).toEqual({
    baseUrl: 'https://old.test',
    extra: 1,
    accessToken: 'canary-token-1',
    family: 'beta',
    chatModel: 'm-1',
    agentsUrl: 'https://agents.test/',
    apiKeyCommand: 'pass show key',
    workspaceId: 'ws_1',
  })
  expect(ended.err).toContain('  baseUrl [https://old.test]: ')
  expect(ended.err).toContain('  accessToken must be one word of ASCII: ')
  expect(ended.err).toContain('  agentsUrl must begin with https:// or http://\n')
  expect(ended.err).not.toContain('canary')
})

test('config init checks the settings at its end if the user agrees', async () => {
  const { env, file } = world()
  const typed = 'https://a.test\nt-1\r\n\n\n\ny\n'
  const ended = await run(['config', 'init'], { env, typed, exchange: answering(message('Hi')) })
  expect(ended.code).toBe(0)
  expect(file().profiles.default).toEqual({ baseUrl: 'https://a.test', accessToken: 't-1' })
  expect(ended.requests.map(({ method }) => method)).toEqual(['GET'])
  expect(ended.err).toContain('Check it now? [Y/n] ')
  expect(ended.out).toContain('gateway: ')
})

test.each([
  [[], 'the environment overrides the profile: PARLEY_BASE_URL; --profile default uses'],
  [['--profile', 'work'], undefined],
])('config init warns about overriding variables only without --profile: flags %j', async (flags, note) => {
  const { also } = world()
  const typed = 'https://a.test\nt-1\r\n\n\n\nn\n'
  const options = { ...also({ PARLEY_BASE_URL: 'https://env.test' }), typed }
  const ended = await run(['config', 'init', ...flags], options)
  expect(ended.code).toBe(0)
  if (note) expect(ended.err).toContain(note)
  else expect(ended.err).not.toContain('overrides')
})

test('config init saves nothing if the input ends before the last answer', async () => {
  const { env, path } = world()
  const err = /\nparley: the input ended before the question was answered\n {2}nothing was changed\n$/
  expect(await run(['config', 'init'], { env, typed: 'https://a.test\n' })).toMatchObject(rejected(2, err))
  expect(() => readFileSync(path)).toThrow('ENOENT')
})

test('config init exits with 2 without a terminal, and writes nothing without answers', async () => {
  const { env, path } = world()
  expect((await run(['config', 'init'], { env, stdin: 'https://a.test\n' })).code).toBe(2)
  const ended = await run(['config', 'init'], { env, typed: '\n\n' })
  expect(ended).toMatchObject({ code: 0, out: '', err: expect.stringContaining('nothing changed') })
  expect(() => readFileSync(path)).toThrow('ENOENT')
})

test('config set accepts a shared flag between the key and the value true', async () => {
  const { env, file } = world()
  const ended = await run(['config', 'set', 'stream', '-q', 'true'], { env })
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(file().profiles.default.stream).toBe(true)
})
