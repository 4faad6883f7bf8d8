import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { topics } from '../../src/cli/topics.ts'
import { meetsRequirement } from '../harness/needs.ts'
import { installNode } from '../harness/node.ts'
import { npm, pack } from '../harness/npm.ts'
import { execute, preloading, type StartedEmulator, startEmulator } from '../harness/process.ts'
import { message, readJson, readText, temporaryFolder } from '../harness/run.ts'
import { envFor, response, serve } from '../harness/server.ts'
import { runAtTerminal } from '../harness/typing.ts'

/** Versions of Node to test. `npm run test:compat` sets all supported versions and some that are too old. */
const versions = process.env.TEST_NODES?.split(' ') ?? [process.versions.node]
const tooOld = process.env.TEST_OLD_NODES?.split(' ') ?? []

const nodeOf = (version: string) => installNode(version, inject('outside'))

const prefix = temporaryFolder()
const installed = join(prefix, 'node_modules/parley-cli')
const binary = join(installed, 'bin/parley.cjs')

beforeAll(() => {
  npm('install', '--prefix', prefix, pack(prefix))
})

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.replaceAll('\\', '/'))

test('the package contains the program and its pages, has no dependencies, and is small', () => {
  const files = filesIn(installed)
  expect(files.filter((file) => !/^(dist|bin)\/[\w-]+\.cjs$/.test(file)).toSorted()).toEqual([
    'CHANGELOG.md',
    'LICENSE',
    'README.md',
    'dist/THIRD-PARTY-LICENSES.txt',
    'dist/completion.bash',
    'dist/completion.fish',
    'dist/completion.zsh',
    'dist/hints.txt',
    ...topics.map((name) => `dist/topics/${name}.txt`).toSorted(),
    'package.json',
  ])
  const packages = readdirSync(join(prefix, 'node_modules')).filter((name) => !name.startsWith('.'))
  expect(packages).toEqual(['parley-cli'])
  const size = files.reduce((sum, file) => sum + readFileSync(join(installed, file)).length, 0)
  expect(size).toBeLessThan(1.6e6)
})

const timeout = 600_000

test('npm pack creates the same bytes in each clone, on each Node and umask (needs git)', { timeout }, () => {
  const root = join(import.meta.dirname, '../..')
  const listed = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
  const files = listed.split('\0').slice(0, -1)
  /** Packs in a clone whose files were created with this umask. */
  const packIn = (node: string, umask: number) => {
    const clone = temporaryFolder()
    for (const file of files.filter((each) => existsSync(join(root, each)))) {
      cpSync(join(root, file), join(clone, file), { recursive: true })
      chmodSync(join(clone, file), (file === 'bin/parley.cjs' ? 0o777 : 0o666) & ~umask)
    }
    symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'), 'junction')
    const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` }
    const before = process.umask(umask)
    try {
      const shell = process.platform === 'win32'
      execFileSync('npm', ['pack', '--offline', '--silent'], { cwd: clone, env, shell })
    } finally {
      process.umask(before)
    }
    return readFileSync(join(clone, `parley-cli-${manifest.version}.tgz`))
  }
  const [first, ...others] = [
    ...[0o022, 0o077].map((umask) => packIn(process.execPath, umask)),
    ...versions.map((version) => packIn(nodeOf(version), 0)),
  ]
  for (const other of others) expect(first?.equals(other)).toBe(true)
})

test('npm installs the command parley', () => {
  const printed = npm('exec', '--prefix', prefix, '--', 'parley', '--version')
  expect(printed).toBe(manifest.version)
})

/** Makes Node report another version, because parley checks only the reported version. */
const claiming = (version: string) => {
  const versions = `{ ...process.versions, node: '${version}' }`
  return preloading(`Object.defineProperty(process, 'versions', { value: ${versions} })`)
}

const oldest = manifest.engines.node.replace('>=', '')
const refusal = (version: string) => ({
  code: 2,
  out: '',
  err: `parley: Node ${version} is too old: ${oldest} or newer is needed\n`,
})

test.each(['4.9.1', '20.18.3'])('parley exits with 2 on Node %s, which is too old', async (old) => {
  expect(await execute(['chat', 'hi'], { env: claiming(old) })).toMatchObject(refusal(old))
})

test.each(['20.19.0', '100.0.0-nightly'])('parley runs on Node %s', async (version) => {
  expect(await execute(['--version'], { env: claiming(version) })).toMatchObject({ code: 0, err: '' })
})

test.each(tooOld)('parley on Node %s prints that this Node is too old', async (old) => {
  const program = [nodeOf(old), binary]
  expect(await execute(['chat', 'hi'], { program })).toMatchObject(refusal(old))
})

/** Chunks without saved compiled code. If the command `script` is missing, also the chunks for terminals. */
const notTyped = meetsRequirement('script') ? [] : ['init', 'ora', 'setup']
const notCompiled = ['schema-worker', 'scripts', ...notTyped]

describe.each(versions)('packed package on Node %s', (version) => {
  const cwd = temporaryFolder({
    's.json': '{"type":"object","required":["name"]}',
    'rules.json': '{"rules":[],"default":{"decision":"allow"}}',
    'dot.gif': 'GIF89a\x01\0\x01\0\0\0\0;',
  })
  const cache = join(cwd, 'cache')
  const program = [nodeOf(version), binary]
  const env: Record<string, string> = {
    ...{ PARLEY_ACCESS_TOKEN: 't', PARLEY_API_KEY: 'k', PARLEY_SESSION: 'sesn_1' },
    ...{ XDG_CACHE_HOME: cache, LOCALAPPDATA: cache },
  }
  let emulator: StartedEmulator

  beforeAll(async () => {
    emulator = await startEmulator(['-q', '--access-token', 't', '--api-key', 'k'], { program, cwd, env })
    Object.assign(env, emulator.env)
  })
  afterAll(() => void emulator.child.kill())

  const node = JSON.stringify(program[0])
  /** Command lines in their order. Each row has the exit code, or a part of stdout, and the text on stdin. */
  const lines: [line: string, expected?: string | number, stdin?: string][] = [
    ['chat --profile demo Hello', '“Hello”'],
    ['chat Hello --stream --report r.json', '“Hello”'],
    ['chat -f r.json --thread t.json -o a.md And?'],
    ['chat --dry-run', '"contents":[]', '{"contents":[]}'],
    ['chat hi --curl', 'curl '],
    ['chat hi --fail --errors github', 2],
    ['chat', 2, '{"contents":'],
    ['chat hi --base-url LOCALHOST', '“hi”'],
    ['chat hi --cacert r.json', 3],
    ['chat hi --set a.b=1 --no-stdin'],
    ['chat Who? --schema s.json', '{"name":"text"}\n'],
    ['chat --markdown --color always', '\u001b[', '```js\nconst a = 1\n```'],
    ['chat --batch - --results results.ndjson', '', '"a"\n"b"\n'],
    ['chat --batch - --results results.ndjson --resume', '', '"a"\n"b"\n'],
    ['chat -f dot.gif What? --dry-run', 'image/gif'],
    ['image -m a fox --profile demo -o demo.png'],
    ['image -m a fox', 'fox.png\n'],
    ['image -m a fox -o fox.png', 11],
    ['image -m a -f fox.png --batch - -o pics/', '', '"a fox"\n'],
    ['events send use|a|tool --follow', 12],
    ['events confirm --pending --allow --follow'],
    ['events run use|a|tool --policy rules.json --audit audit.ndjson'],
    ['policy check rules.json -', 'allow', '{"id":"t","type":"agent.tool_use","name":"bash","input":{}}'],
    ['events list --type agent.message', 'agent.message'],
    ['events follow --history --raw', 'session.status_idle'],
    ['events send --interrupt --beta nonsense', 2],
    ['sessions show sesn_1', 'idle'],
    ['api agents /v1/sessions/sesn_1/events --paginate -o page.ndjson'],
    ['api agents /v1/sessions --profile demo --set agent=a --set environment_id=e', 'sesn_'],
    ['config set accessToken', '', 'canary-1234\n'],
    ['config set --profile work baseUrl GATEWAY'],
    [`config set --profile work accessTokenCommand ${node}|-p|1`],
    ['config use work'],
    ['config profiles', 'work'],
    ['config get accessTokenCommand', `${node} -p 1\n`],
    ['config list --effective', 'agentsVersion'],
    ['config check', 'gateway: reachable'],
    ['chat --profile work hi', 3],
    ['config unset --profile work baseUrl'],
    ['config delete work --yes'],
    ['config path', 'config.json'],
    ['serve --port PORT', 11],
    ...['bash', 'zsh', 'fish'].map((shell): [string, string] => [`completion ${shell}`, 'parley']),
    ['help exit-codes', 'rate-limited'],
    ['help chat --json', '"flags"'],
    ['--help', 'parley chat'],
    ['--version', `${manifest.version}\n`],
    ['init', 2],
    ['help completion', 'parley completion'],
  ]

  test('each command of the packed program runs', async () => {
    const { PARLEY_BASE_URL: address = '' } = env
    const { port: PORT } = new URL(address)
    const words = { GATEWAY: address, LOCALHOST: address.replace('127.0.0.1', 'localhost'), PORT }
    const toWord = (word: string) => (words[word as keyof typeof words] ?? word).replaceAll('|', ' ')
    for (const [line, expected = '', stdin = ''] of lines) {
      const argv = line.split(' ').map(toWord)
      const { code, out, err } = await execute(argv, { program, cwd, env, stdin })
      expect(code, `${line}: ${err}`).toBe(typeof expected === 'number' ? expected : 0)
      if (typeof expected === 'string') expect(out, line).toContain(expected)
    }
    expect(readJson(cwd, 'r.json')).toMatchObject({ exit: 0 })
    expect(readText(cwd, 'a.md')).toContain('“And? r.json')
    expect(readText(cwd, 'results.ndjson').trim().split('\n')).toHaveLength(2)
    expect(readText(cwd, 'page.ndjson')).toContain('session.status_idle')
    expect(filesIn(join(cwd, 'pics'))).toHaveLength(1)
    const proxy = await serve((socket) => socket.end(response('', '407 Who are you?')))
    const proxied = { ...env, HTTPS_PROXY: proxy.url, PARLEY_BASE_URL: 'https://a.test' }
    expect((await execute(['chat', 'hi'], { program, cwd, env: proxied, stdin: '' })).code).toBe(3)
  })

  test('the packed program prompts and lays out text on a terminal (needs script)', async () => {
    const shown = async (words: string, answers: [string, string][] = [], also = {}) => {
      const command = `stty cols 80 rows 24; ${program.map((word) => `'${word}'`).join(' ')} ${words}`
      const { code, screen } = await runAtTerminal(command, cwd, answers, { ...env, ...also })
      expect(code, screen).toBe(0)
      return screen
    }
    const readme = readText(installed, 'README.md')
    const [, chat = ''] = /parley (chat --profile demo .*)/.exec(readme) ?? []
    const [, agent = ''] = /`parley (events run --profile demo [^`]*)`/.exec(readme) ?? []
    const screens = [await shown(chat), await shown('image --profile demo "a red fox"')]
    screens.push(await shown(agent, [['/s/q]', 'y\n']]))
    expect(screens).toEqual(
      [/“Say hello”/, /^a-red-fox/m, /The emulated agent is done/].map((sign) => expect.stringMatching(sign)),
    )
    expect(await shown('events list')).toMatch(/agent\.message {2,}\S+ \S+\r?\n {2}The emulated/)
    expect(await shown('events list --order asc --limit 1')).toContain('user.message')
    expect(await shown('chat --profile demo --stream hi')).toContain('hi')
    expect(await shown('help formats', [], { PAGER: 'head -3' })).not.toContain('--report')
    const acceptDefault = (name: string): [string, string] => [`\x1b[0J  ${name}`, '\n']
    const answers: [string, string][] = [
      ['  baseUrl: ', 'https://a.test\n'],
      ['  accessToken (not shown): ', 'canary-1\r'],
      ...['family', 'chatModel', 'imageModel', 'agentsUrl'].map(acceptDefault),
      ['Check it now? [Y/n] ', 'n\n'],
    ]
    expect(await shown('config init --profile typed', answers)).not.toContain('canary')
    const slow = await serve((socket) => setTimeout(() => socket.end(response(message('Hi'))), 1000))
    expect(await shown('chat hi', [], envFor(slow))).toContain('waiting for the answer')
  })

  test('the tests of the packed program load all of its files', () => {
    const names = (files: string[]) => files.flatMap((file) => /([\w.-]+)\.cjs$/.exec(file)?.[1] ?? [])
    const kept = filesIn(cache).map((file) => file.replace(/.*-dist-v[\d.]+-\w+-/, ''))
    const tried = [...names(kept), ...notCompiled]
    const untried = names(filesIn(join(installed, 'dist'))).filter((name) => !tried.includes(name))
    expect(untried).toEqual([])
  })
})
