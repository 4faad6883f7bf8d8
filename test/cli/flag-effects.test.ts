import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { CliError } from '../../src/errors.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { makeCertificate } from '../faults/certificates.ts'
import { imageAnswer, inline, png } from '../gateway/image/image.ts'
import { bash, type Event, endTurn, running, says, waitsFor } from '../harness/events.ts'
import { answering, createFastClock, createResponse, message, run } from '../harness/run.ts'
import { response, serve } from '../harness/server.ts'
import { createSessionService, type ScriptEvents } from '../harness/session-service.ts'

/** How to run a command with and without a flag. */
interface Row {
  /** Value of the flag. */
  value?: string
  /** Command line instead of the command's line in `lines`. */
  line?: string
  /** Words after the command line. */
  more?: string | string[]
  /** Requirements, which the title names. */
  needs?: string
  stdin?: string
  env?: Record<string, string>
  tty?: ('stdout' | 'stderr')[]
  /** Replaces the services. */
  exchange?: Exchange
  /** Replaces the services by a server on this machine. */
  server?: keyof typeof servers
  /** Files in addition to `files`. */
  files?: Record<string, string>
  /** Events before the command. */
  history?: ScriptEvents
  /** The clock runs fast while a `--tool` command runs, so only the exit code and the posts are compared. */
  isTimed?: boolean
  /** The flag makes the command line a usage error. */
  isUsageError?: boolean
}

/** Command line without the flag, by command. */
const lines: Record<string, string> = {
  '': 'chat hi',
  chat: 'chat hi',
  image: 'image fox -m m',
  events: 'events lst',
  'events send': 'events send hi',
  'events confirm': 'events confirm t1',
  'events run': 'events run hi',
  sessions: 'sessions lst',
  'sessions create': 'sessions create -i session.json',
  'sessions show': 'sessions show s1',
  api: 'api agents /v1/sessions',
  policy: 'policy chk',
  'policy check': 'policy check policy.json',
  config: 'config lst',
  'config set': 'config set betas odd-1',
  'config get': 'config get accessToken --profile work',
  'config unset': 'config unset accessToken --profile work',
  'config use': 'config use work',
  'config delete': 'config delete work',
  completion: 'completion bash',
  help: 'help chat',
}

const user = (text: string) => ({ role: 'user', parts: [{ text }] })

/** Files in the folder of each run. */
const files: Record<string, string> = {
  'text.txt': 'text of a file',
  'body.json': JSON.stringify({ contents: [user('prompt of a body')] }),
  'session.json': '{"agent":"b","environment_id":"f","title":"T"}',
  'events.json': '[{"type":"user.interrupt"}]',
  'recorded.json': [bash('t2'), waitsFor('t2')].map((event) => JSON.stringify(event)).join('\n'),
  'custom.json': '{"id":"c1","type":"agent.custom_tool_use","name":"count","input":{}}',
  'policy.json': '{"rules":[{"tool":"bash","decision":"deny"}]}',
  'schema.json': '{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}',
  'lines.ndjson': '"one"\n"two"\n',
  'config.json': '{"profiles":{"work":{"accessToken":"canary-token-of-work","retries":1}}}',
}

const failing = (status: number, headers = {}) => answering('{}', { status, headers })
const unanswered: Exchange = async () => {
  throw new CliError('unknown', 'no answer', { sent: 'unknown' })
}

const beta = 'files-api-2025-04-14'
const terminal: Row = { tty: ['stdout'] }
const countTask = (value: string, ...more: string[]): Row => ({ line: 'events run count', more, value })
const waiting: ScriptEvents = [bash('t1'), waitsFor('t1')]
const count: Event = { id: 'c1', type: 'agent.custom_tool_use', name: 'count', input: {} }

/** Sends one request at a time, because concurrent requests have a different order in each run. */
function batchRows(command: string, line: string): Record<string, Row> {
  const flags: Record<string, Row> = {
    '--results': { value: 'new.ndjson' },
    '--resume': { more: '--results old.ndjson', files: { 'old.ndjson': '' } },
    '--share': { value: '1/2' },
    '--max-failed': { value: '2', exchange: failing(400) },
    '--max-total-tokens': { value: '1' },
  }
  return Object.fromEntries(
    Object.entries(flags).map(([flag, row]) => [
      `${command} ${flag}`,
      { line: `${line} --concurrency 1`, ...row },
    ]),
  )
}

/** Rows by flag, or by command and flag. A text is a row with only a value. */
const rows: Record<string, Row | string> = {
  // Flags of every request.
  '--version': { line: '' },
  '--help': '',
  '--raw': '',
  '--dry-run': '',
  '--curl': '',
  '--header': 'x-a: b',
  '--retry-unknown': { exchange: unanswered },
  '--no-stdin': { stdin: 'more' },
  '--report': 'report.json',
  '--verbose': '',
  '--profile': 'demo',
  '--quiet': { more: '--usage' },
  '--errors': { exchange: failing(404), value: 'json' },
  '--color': { exchange: failing(404), value: 'always' },
  '--no-pager': { line: 'help chat', tty: ['stdout', 'stderr'], env: { PAGER: 'pg' } },
  '--base-url': 'https://other.test',
  '--agents-url': { line: 'sessions list', value: 'https://other.test' },
  '--agents-auth': { line: 'sessions list', value: 'bearer' },
  '--workspace-id': { line: 'sessions list', value: 'w' },
  '--family': 'beta',
  '--vendor': { line: 'sessions list', value: 'other' },
  '--agents-version': { line: 'sessions list', value: '2024-01-01' },
  '--betas': { line: 'sessions list', value: beta },
  '--answer-role': { more: '--thread new.json', value: 'assistant' },
  '--stream-via': { more: '--stream', value: 'path' },
  '--schema-via': { more: '--schema schema.json', value: 'native' },
  '--timeout': { server: 'silent', env: { PARLEY_TIMEOUT: '100ms' }, more: '--retries 0', value: '50ms' },
  '--deadline': { exchange: failing(503, { 'retry-after': '4' }), value: '5' },
  '--connect-timeout': {
    server: 'deaf',
    env: { PARLEY_CONNECT_TIMEOUT: '100ms' },
    more: '--retries 0',
    value: '50ms',
  },
  '--retries': { exchange: failing(500), value: '1' },
  '--cacert': { server: 'secure', more: '--retries 0', value: 'ca.pem', needs: 'openssl' },
  '--allow-http': { more: '--base-url http://other.test' },

  // Flags of several commands.
  '--session': 's2',
  '--beta': beta,
  '--no-beta': '',
  '--no-validate': { more: '--beta odd-1' },
  '--system': 'be brief',
  '--input': 'body.json',
  '--file': 'text.txt',
  '--set': 'a=1',
  '--fail-on-empty': { stdin: '', isUsageError: true },
  '--ids': '',
  '--follow': '',
  '--output': 'new.txt',
  '--usage': '',
  '--message': 'more',
  '--interrupt': '',
  '--interrupt-thread': 'th1',
  '--tool-result': 't1=ok',
  '--tool-error': 't1=failed',
  '--custom-tool-result': 't1=ok',
  '--custom-tool-error': 't1=failed',
  '--outcome': 'tested',
  '--rubric': { more: '--outcome tested', value: 'all of it' },
  '--max-iterations': { more: '--outcome tested', value: '3' },
  '--event': '{"type":"user.interrupt"}',
  '--schema': 'schema.json',

  // Flags of the gateway's commands.
  '--model': 'other',
  '--temperature': '0.5',
  '--max-output-tokens': '5',
  '--batch': 'lines.ndjson',
  ...batchRows('chat', 'chat --batch lines.ndjson'),
  ...batchRows('image', 'image -m m -o new/ --batch lines.ndjson'),
  'chat --stream': '',
  'chat --no-stream': { env: { PARLEY_STREAM: 'true' } },
  'chat --fail-on-cut': { more: '--max-output-tokens 2' },
  'chat --no-fail-on-cut': { more: '--max-output-tokens 2', env: { PARLEY_FAIL_ON_CUT: 'true' } },
  'chat --thread': 'new.json',
  'chat --schema-retries': {
    exchange: answering(message('no JSON')),
    more: '--schema schema.json',
    value: '2',
  },
  'chat --markdown': { exchange: answering(message('# Title')) },
  'chat --no-markdown': { exchange: answering(message('# Title')), ...terminal },
  'image --fail-on-cut': { exchange: answering(imageAnswer(inline(png().subarray(0, -12)))) },
  'image --no-fail-on-cut': {
    exchange: answering(imageAnswer(inline(png().subarray(0, -12)))),
    env: { PARLEY_FAIL_ON_CUT: 'true' },
  },
  'image --force': { more: '-o text.txt' },
  'image --preview': terminal,
  'image --no-preview': { ...terminal, env: { TERM: 'xterm-kitty' } },

  // Flags of the session service's commands.
  'events confirm --session': { more: '--allow', value: 's2' },
  'events confirm --beta': { more: '--allow', value: beta },
  'events confirm --no-beta': { more: '--allow' },
  'events confirm --no-validate': { more: '--allow --beta odd-1' },
  'events confirm --allow': '',
  'events confirm --deny': '',
  'events confirm --message': { more: '--deny', value: 'not today' },
  'events confirm --pending': { line: 'events confirm --allow', history: waiting },
  'events confirm --input': { line: 'events confirm --allow', value: 'recorded.json' },
  'events confirm --follow': { more: '--allow' },
  'events send --input': 'events.json',
  'events run --input': 'events.json',
  'events run --after': {
    line: 'events run',
    history: [says('first'), says('second'), endTurn],
    value: 'e2',
  },
  'events run --policy': { line: 'events run bash', value: 'policy.json' },
  'events run --audit': 'new.ndjson',
  'events run --tool': countTask('count=echo done'),
  'events run --tool-timeout': {
    ...countTask('5', '--tool', 'count=sleep 1000'),
    isTimed: true,
    needs: 'sh',
  },
  'events run --fail-on-tool-error': { ...countTask('', '--tool', 'count=false'), needs: 'sh' },
  'events run --max-total-tokens': '1',
  'events run --max-cost': '0.01',
  'events run --last': '',
  'events list --type': 'agent.message',
  'events list --order': 'desc',
  'events list --limit': '1',
  'events follow --history': '',
  'events follow --stay': { more: '--deadline 60' },
  'sessions list --status': 'running',
  'sessions list --limit': '1',
  'sessions create --agent': 'c',
  'sessions create --environment': 'g',
  'sessions create --title': 'Nightly',
  'sessions create --input': { line: 'sessions create --agent a --environment e', value: 'session.json' },
  'policy check --session': 's1',
  'policy check --beta': { more: '-s s1', value: beta },
  'policy check --no-beta': { more: '-s s1' },
  'policy check --no-validate': { more: '-s s1 --beta odd-1' },
  'policy check --tool': { more: 'custom.json', value: 'count=echo done' },
  'policy check --fail-on-deny': { more: 'recorded.json' },

  // Flags of the other commands.
  'api --method': 'DELETE',
  'api --include': '',
  'api --paginate': '',
  'config set --no-validate': '',
  'config get --reveal': '',
  'config list --effective': '',
  'config delete --yes': '',
  'help --json': '',
}

/** Servers on this machine, by their behavior. */
const servers = {
  /** Accepts requests and never answers. */
  silent: () => serve(() => {}),
  /** Accepts connections and never reads. */
  deaf: () => serve(() => {}, { onConnection() {} }),
  /** Has a certificate that no client trusts by default. */
  secure: () => serve((socket) => socket.end(response(message('Hi'))), { tls: getCertificate() }),
}

let certificate: ReturnType<typeof makeCertificate> | undefined
const getCertificate = () => {
  certificate ??= makeCertificate('IP:127.0.0.1')
  return certificate
}

const spent: Event = {
  type: 'session.usage',
  usage: { input_tokens: 1000, output_tokens: 0, list_cost: { amount: '500', currency: 'USD' } },
}

/** Steps of the agent after posted events: the task "bash" or "count" requests that tool. */
function react(posted: readonly Event[]): ScriptEvents {
  const text = JSON.stringify(posted)
  if (text.includes('"bash"')) return [running, ...waiting]
  if (text.includes('"count"')) return [running, count, waitsFor('c1')]
  return [running, says('a word'), says('done'), spent, endTurn]
}

const session = { id: 's1', status: 'idle', title: 'T', updated_at: '2026-01-01T00:00:00Z' }

type Observed = Record<string, unknown> & { code: number; err: string }

/** Runs a command line in a new folder. Returns its exit code, output, requests and files. */
async function observe(words: string[], row: Row): Promise<Observed> {
  const { history = [says('before'), endTurn], server: kind, stdin, tty } = row
  const isTimed = row.isTimed || kind !== undefined
  const service = createSessionService({
    history,
    posts: [{ next: react }],
    ...(isTimed && { timers: createFastClock(2000) }),
  })
  const { cwd } = service
  const texts = { ...files, ...(kind === 'secure' && { 'ca.pem': getCertificate().cert }), ...row.files }
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(cwd, name), text, { mode: 0o600 })
  const emulate = createEmulator({})
  const route: Exchange = async (request, onSent) => {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/v1/sessions/')) return service.exchange(request, onSent)
    const isList = pathname === '/v1/sessions' && request.method === 'GET'
    return isList ? createResponse(JSON.stringify({ data: [session] })) : emulate(request, onSent)
  }
  const server = kind && (await servers[kind]())
  const address = `http${kind === 'silent' ? '' : 's'}://127.0.0.1:${server?.port}`
  const paged: unknown[] = []
  const { code, out, err, requests } = await service.run(words, {
    env: { PARLEY_CONFIG_DIR: cwd, ...(server && { PARLEY_BASE_URL: address }), ...row.env },
    exchange: server ? 'network' : (row.exchange ?? route),
    ...(stdin !== undefined && { stdin, stdinKind: 'pipe' }),
    ...(tty && { tty, columns: 80, rows: 24 }),
    runPager: async (command) => paged.push(command) - 1,
  })
  const sent = requests.map(({ method, url, headers, text }) => ({ method, url, headers, text }))
  if (row.isTimed) return { code, err: '', posts: sent.filter(({ method }) => method === 'POST') }
  const observed = { code, out, err, sent, paged, files: readFolder(cwd) }
  return JSON.parse(maskRandom(JSON.stringify(observed), cwd))
}

/** Masks the random parts of an output, which differ between two runs of a command line. */
const maskRandom = (text: string, cwd: string) =>
  text
    .replaceAll(cwd, 'CWD')
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+Z?/g, 'TIME')
    .replaceAll(/\b(msg|req|sesn|sevt)_\w{20,}|\b[\da-f]{8}-[\da-f-]{27}\b/g, 'ID')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')

function readFolder(folder: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(path, 'latin1')]))
}

/** Exit code of a usage error. */
const usage = 2

interface Flag {
  command: string
  flag: string
  row: Row | undefined
  /** Key in `rows`. */
  key: string
  /** The command has subcommands. */
  isGroup: boolean
}

/** Flags that other tests cover. Two runs of `serve` always differ, and concurrency changes no result. */
const testedElsewhere = /^serve |^(chat|image) --concurrency$/

/** Returns the shared flags once, and the own flags of each command. */
async function listFlags(words: string[] = []): Promise<Flag[]> {
  const { flags, subcommands } = JSON.parse((await run(['help', ...words, '--json'])).out)
  const found: Flag[] = []
  for (const { flag, shared: isShared } of flags) {
    if (isShared && words.length > 0) continue
    const command = words.join(' ')
    if (testedElsewhere.test(`${command} ${flag}`)) continue
    const key = [`${command} ${flag}`, flag].find((name) => Object.hasOwn(rows, name)) ?? ''
    const row = rows[key]
    const isGroup = words.length > 0 && subcommands.length > 0
    found.push({ command, flag, key, row: typeof row === 'string' ? { value: row } : row, isGroup })
  }
  for (const { name } of subcommands) found.push(...(await listFlags([...words, name])))
  return found
}

/** Results without the flag, by command line. Rows with the same command line share a result. */
const bases = new Map<string, Promise<Observed>>()

/** Commands with a replaced service or file whose two runs without the flag were already compared. */
const repeated = new Set<string>()

function observeBase(words: string[], row: Row): Promise<Observed> {
  const { value: _, line: __, more: ___, isUsageError: ____, needs: _____, ...world } = row
  const observed = async () => {
    const first = await observe(words, row)
    expect(await observe(words, row), 'two runs without the flag differ').toEqual(first)
    return first
  }
  if (Object.keys(world).length > 0) {
    const command = words.slice(0, 2).join(' ')
    if (repeated.has(command)) return observe(words, row)
    repeated.add(command)
    return observed()
  }
  const key = words.join('\n')
  const base = bases.get(key) ?? observed()
  bases.set(key, base)
  return base
}

/**
 * Removes the lines of stderr that repeat the flag or print a command. A resume command repeats every flag,
 * so these lines prove nothing.
 */
const withoutFlag = ({ err, ...rest }: Observed, flag: string) => ({
  ...rest,
  err: err.split('\n').filter((line) => ![` ${flag}`, ' parley '].some((text) => line.includes(text))),
})

const split = (words: string | string[] = []) => (typeof words === 'string' ? words.split(' ') : words)

const all = await listFlags()

test.each(
  all.map((each) => {
    const needs = each.row?.needs ? ` (needs ${each.row.needs})` : ''
    return [`${each.command} ${each.flag}`.trim(), needs, each] as const
  }),
)(
  '%s has an effect on the exit code, the output, a request or a file%s',
  async (_name, _needs, { command, flag, row, isGroup }) => {
    if (!row) throw new Error('no row: give this flag one')
    const base = [...split(row.line ?? lines[command] ?? command), ...split(row.more)].filter(Boolean)
    // The flag of a group precedes the name of the group's command.
    const flagged = base.toSpliced(isGroup ? 1 : base.length, 0, flag, ...(row.value ? [row.value] : []))
    const without = await observeBase(base, row)
    const ended = await observe(flagged, row)
    expect(ended.code === usage, ended.err).toBe(row.isUsageError ?? false)
    expect(withoutFlag(ended, flag)).not.toEqual(withoutFlag(without, flag))
  },
)

test('each flag that this file tests belongs to a command', () => {
  const keys = all.map(({ key }) => key)
  expect(Object.keys(rows).filter((key) => !keys.includes(key))).toEqual([])
})
