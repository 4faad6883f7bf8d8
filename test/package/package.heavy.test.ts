import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { topics } from '../../src/cli/topics.ts'
import { meetsRequirement } from '../harness/needs.ts'
import { installNode } from '../harness/node.ts'
import { npm, pack } from '../harness/npm.ts'
import { execute, type StartedEmulator, startEmulator } from '../harness/process.ts'
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
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath, entry.name)
        .slice(folder.length + 1)
        .replaceAll('\\', '/'),
    )

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
    ...topics.map((name) => `dist/topics/${name}.txt`).toSorted(),
    'package.json',
  ])
  expect(readdirSync(join(prefix, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual([
    'parley-cli',
  ])
  const size = files.reduce((sum, file) => sum + readFileSync(join(installed, file)).length, 0)
  expect(size).toBeLessThan(1.6e6)
})

test('npm pack creates the same bytes in each clone, on each Node, with each umask (needs git)', {
  timeout: 600_000,
}, () => {
  const root = join(import.meta.dirname, '../..')
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
    .split('\0')
    .slice(0, -1)
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
      execFileSync('npm', ['pack', '--offline', '--silent'], {
        cwd: clone,
        env,
        shell: process.platform === 'win32',
      })
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
  const claim = join(temporaryFolder(), 'claim.cjs')
  const versions = `{ ...process.versions, node: '${version}' }`
  writeFileSync(claim, `Object.defineProperty(process, 'versions', { value: ${versions} })`)
  return { NODE_OPTIONS: `--require ${JSON.stringify(claim)}` }
}

const oldest = manifest.engines.node.replace('>=', '')
const refusal = (version: string) => ({
  code: 2,
  out: '',
  err: `parley: Node ${version} is too old: ${oldest} or newer is needed\n`,
})

test.each(['4.9.1', '20.18.3'])(
  'parley exits with 2 and prints one line on Node %s, which is too old',
  async (old) => {
    expect(await execute(['chat', 'hi'], { env: claiming(old) })).toMatchObject(refusal(old))
  },
)

test.each(['20.19.0', '100.0.0-nightly'])('parley runs on Node %s', async (version) => {
  expect(await execute(['--version'], { env: claiming(version) })).toMatchObject({ code: 0, err: '' })
})

test.each(tooOld)('parley on Node %s prints that this Node is too old', async (old) => {
  const program = [nodeOf(old), binary]
  expect(await execute(['chat', 'hi'], { program })).toMatchObject(refusal(old))
})

/** Chunks without saved compiled code. If the command `script` is missing, also the chunks for terminals. */
const notCompiled = [
  'schema-worker',
  'scripts',
  ...(meetsRequirement('script') ? [] : ['init', 'ora', 'setup']),
]

describe.each(versions)('packed package on Node %s', (version) => {
  const cwd = temporaryFolder()
  const cache = join(cwd, 'cache')
  const program = [nodeOf(version), binary]
  const env: Record<string, string> = {
    PARLEY_ACCESS_TOKEN: 't',
    PARLEY_API_KEY: 'k',
    PARLEY_SESSION: 'sesn_1',
    XDG_CACHE_HOME: cache,
    LOCALAPPDATA: cache,
  }
  let emulator: StartedEmulator

  beforeAll(async () => {
    const argv = ['-q', '--access-token', 't', '--api-key', 'k']
    emulator = await startEmulator(argv, { program, cwd, env })
    Object.assign(env, emulator.env)
  })
  afterAll(() => void emulator.child.kill())

  /** Runs the installed program and returns its stdout. Fails if it exits with another code. */
  async function parley(
    argv: string[],
    {
      stdin = '',
      code = 0,
      also = {},
    }: { stdin?: string; code?: number; also?: Record<string, string> } = {},
  ): Promise<string> {
    const ended = await execute(argv, { program, cwd, env: { ...env, ...also }, stdin })
    expect(ended, ended.err).toMatchObject({ code, signal: null })
    return ended.out
  }

  test('chat of the packed program streams, writes files, continues a thread and previews requests', async () => {
    expect(await parley(['chat', '--profile', 'demo', 'Say hello'])).toContain('“Say hello”')
    expect(await parley(['chat', 'Say hello', '--stream', '--report', 'r.json'])).toContain('“Say hello”')
    expect(readJson(cwd, 'r.json')).toMatchObject({ exit: 0 })
    await parley(['chat', '-f', 'r.json', '--thread', 't.json', '-o', 'a.md', 'And?'])
    expect(readText(cwd, 'a.md')).toContain('“And? r.json')
    expect(await parley(['chat', '--dry-run'], { stdin: '{"contents":[]}' })).toContain('"contents":[]')
    expect(await parley(['chat', 'hi', '--curl'])).toContain('curl ')
    await parley(['chat', 'hi', '--fail', '--errors', 'github'], { code: 2 })
    await parley(['chat'], { stdin: '{"contents":', code: 2 })
    const byName = (env.PARLEY_BASE_URL ?? '').replace('127.0.0.1', 'localhost')
    expect(await parley(['chat', 'hi', '--base-url', byName])).toContain('“hi”')
    const proxy = await serve((socket) => socket.end(response('', '407 Who are you?')))
    const tunnelled = { HTTPS_PROXY: proxy.url, PARLEY_BASE_URL: 'https://a.test' }
    await parley(['chat', 'hi'], { code: 3, also: tunnelled })
    await proxy.close()
    await parley(['chat', 'hi', '--cacert', 'r.json'], { code: 3 })
    await parley(['chat', 'hi', '--set', 'a.b=1', '--no-stdin'])
  })

  test('chat of the packed program checks a schema, lays out Markdown and resumes a batch', async () => {
    writeFileSync(join(cwd, 's.json'), '{"type":"object","required":["name"]}')
    const server = await serve((socket) => socket.end(response(message('{"name":"Emma"}'))))
    try {
      const argv = ['chat', 'Who?', '--schema', 's.json']
      expect(await parley(argv, { also: envFor(server) })).toBe('{"name":"Emma"}\n')
    } finally {
      await server.close()
    }
    const fenced = '```js\nconst a = 1\n```'
    expect(await parley(['chat', fenced, '--markdown', '--color', 'always'])).toContain('\u001b[')
    const argv = ['chat', '--batch', '-', '--results', 'results.ndjson', '--resume']
    for (let times = 1; times <= 2; times++) await parley(argv, { stdin: '"a"\n"b"\n' })
    expect(readText(cwd, 'results.ndjson').trim().split('\n')).toHaveLength(2)
  })

  test('image of the packed program saves images, refuses an existing file and runs a batch', async () => {
    const argv = ['image', '-m', 'alpha-image', 'a red fox']
    await parley([...argv, '--profile', 'demo', '-o', 'demo.png'])
    expect(await parley(argv)).toBe('a-red-fox.png\n')
    await parley([...argv, '-o', 'a-red-fox.png'], { code: 11 })
    await parley(['image', '-m', 'alpha-image', '-f', 'a-red-fox.png', '--batch', '-', '-o', 'pics/'], {
      stdin: '"a fox"\n',
    })
    expect(filesIn(join(cwd, 'pics'))).toHaveLength(1)
    writeFileSync(join(cwd, 'dot.gif'), Buffer.from('GIF89a\x01\0\x01\0\0\0\0;', 'latin1'))
    expect(await parley(['chat', '-f', 'dot.gif', 'What is it?', '--dry-run'])).toContain('image/gif')
  })

  test('the events commands of the packed program send, confirm, run, list and follow', async () => {
    writeFileSync(join(cwd, 'rules.json'), '{"rules":[],"default":{"decision":"allow"}}')
    await parley(['events', 'send', 'Use a tool: list the files', '--follow'], { code: 12 })
    await parley(['events', 'confirm', '--pending', '--allow', '--follow'])
    const rules = ['--policy', 'rules.json', '--audit', 'audit.ndjson']
    await parley(['events', 'run', 'Use a tool: list the files', ...rules])
    writeFileSync(join(cwd, 'session.ndjson'), await parley(['events', 'list', '--raw']))
    expect(await parley(['policy', 'check', 'rules.json', 'session.ndjson'])).toContain('allow')
    expect(await parley(['events', 'list', '--type', 'agent.message'])).toContain('agent.message')
    expect(await parley(['events', 'follow', '--history', '--raw'])).toContain('session.status_idle')
    await parley(['events', 'send', '--interrupt', '--beta', 'nonsense'], { code: 2 })
  })

  test('api of the packed program reads all pages and creates a session', async () => {
    const argv = ['api', 'agents', '/v1/sessions/sesn_1/events', '--paginate', '-o', 'page.ndjson']
    await parley(argv)
    const made = ['--profile', 'demo', '--set', 'agent=agent_1', '--set', 'environment_id=env_1']
    expect(await parley(['api', 'agents', '/v1/sessions', ...made])).toContain('sesn_')
    expect(readText(cwd, 'page.ndjson')).toContain('session.status_idle')
  })

  test('config of the packed program sets, reads, checks and deletes a profile', async () => {
    const command = `${JSON.stringify(program[0])} -p 1`
    await parley(['config', 'set', 'accessToken'], { stdin: 'canary-1234\n' })
    await parley(['config', 'set', '--profile', 'work', 'baseUrl', env.PARLEY_BASE_URL ?? ''])
    await parley(['config', 'set', '--profile', 'work', 'accessTokenCommand', command])
    await parley(['config', 'use', 'work'])
    expect(await parley(['config', 'profiles'])).toContain('work')
    expect(await parley(['config', 'get', 'accessTokenCommand'])).toBe(`${command}\n`)
    expect(await parley(['config', 'list', '--effective'])).toContain('agentsVersion')
    expect(await parley(['config', 'check'])).toContain('gateway: reachable')
    await parley(['chat', '--profile', 'work', 'hi'], { code: 3 })
    await parley(['config', 'unset', '--profile', 'work', 'baseUrl'])
    await parley(['config', 'delete', 'work', '--yes'])
    expect(existsSync((await parley(['config', 'path'])).trim())).toBe(true)
  })

  test('serve of the packed program refuses a port in use, and completion and help print their texts', async () => {
    const port = new URL(env.PARLEY_BASE_URL ?? '').port
    await parley(['serve', '--port', port], { code: 11 })
    for (const shell of ['bash', 'zsh', 'fish']) {
      expect(await parley(['completion', shell])).toContain('parley')
    }
    expect(await parley(['help', 'exit-codes'])).toContain('rate-limited')
    expect(JSON.parse(await parley(['help', 'chat', '--json']))).toHaveProperty('flags')
    expect(await parley(['--help'])).toContain('parley chat')
    expect(await parley(['--version'])).toBe(`${manifest.version}\n`)
    await parley(['init'], { code: 2 })
    expect(await parley(['help', 'completion'])).toContain('parley completion')
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
    const answers: [string, string][] = [
      ['  baseUrl: ', 'https://a.test\n'],
      ['  accessToken (not shown): ', 'canary-1\r'],
      ...['family', 'chatModel', 'imageModel', 'agentsUrl'].map((name): [string, string] => [
        `\x1b[0J  ${name}`,
        '\n',
      ]),
      ['Check it now? [Y/n] ', 'n\n'],
    ]
    expect(await shown('config init --profile typed', answers)).not.toContain('canary')
    const slow = await serve((socket) => setTimeout(() => socket.end(response(message('Hi'))), 1000))
    try {
      expect(await shown('chat hi', [], envFor(slow))).toContain('waiting for the answer')
    } finally {
      await slow.close()
    }
  })

  test('the tests of the packed program load all of its files', () => {
    const names = (files: string[]) => files.flatMap((file) => /([\w.-]+)\.cjs$/.exec(file)?.[1] ?? [])
    const kept = filesIn(cache).map((file) => file.replace(/.*-dist-v[\d.]+-\w+-/, ''))
    const tried = [...names(kept), ...notCompiled]
    const untried = names(filesIn(join(installed, 'dist'))).filter((name) => !tried.includes(name))
    expect(untried).toEqual([])
  })
})
