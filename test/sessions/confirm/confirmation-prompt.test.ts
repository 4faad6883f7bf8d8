import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { bash, confirms, says, waitsFor } from '../../harness/events.ts'
import { answering, createInterrupt, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import { type Agent, openAgent } from '../../harness/session-service.ts'

/** Creates an exchange with a session that lists this page of events and accepts posts. */
const listing = (page: string): Exchange => {
  const [list, receipt] = [answering(page), answering('{"data":[]}')]
  return (request) => (request.method === 'POST' ? receipt : list)(request)
}

/** Runs confirm with a person who is prompted about the tool uses of this page and types `typed`. */
async function promptAbout(page: string, typed: string, columns?: number, rows?: number) {
  const ended = await run(['events', 'confirm', '-s', 's', '--pending'], {
    typed,
    columns,
    rows,
    env: { NO_COLOR: '1' },
    tty: ['stdout', 'stderr'],
    exchange: listing(page),
  })
  const requests = ended.requests.filter(({ method }) => method === 'POST')
  const answers = JSON.parse(requests[0]?.text ?? '{"events":[]}').events
  return { ...ended, requests, verdicts: answers.map(({ result }: { result: string }) => result) }
}

/** Runs confirm with a person who is prompted about these tool uses of bash and types `typed`. */
async function prompt(uses: { id: string; [field: string]: unknown }[], typed: string, columns?: number) {
  const waiting = uses.map((use) => ({ type: 'agent.tool_use', name: 'bash', ...use }))
  const deep = `${'['.repeat(500)}${']'.repeat(500)}`
  const page = JSON.stringify({ data: [...waiting, waitsFor(...uses.map(({ id }) => id))] })
  return promptAbout(page.replace('"DEEP"', deep), typed, columns)
}

/** Creates a terminal of 200 columns. Calls `onWrite` with the whole text after each write. */
function createScreen(onWrite?: (text: string) => void) {
  let text = ''
  const stream = new Writable({
    write(chunk, _, done) {
      text += chunk
      onWrite?.(text)
      done()
    },
  })
  return {
    terminal: { isTerminal: true, columns: 200, open: () => stream, writeSync: () => 0 },
    getText: () => text,
    shows: (part: string) => expect.poll(() => text, { timeout: 60_000 }).toContain(part),
  }
}

/** Returns the rows of the prompt without their prefixes. */
const shownIn = (err: string) => [...err.matchAll(/^ {2}[|:] (.*)$/gm)].map(([, text]) => text)

test('V23: a prompt shows the whole input even if it is long', async () => {
  const command = `${'safe '.repeat(2000)}; rm -rf / # ${'字'.repeat(500)}`
  const { code, err, verdicts } = await prompt([{ id: 't1', input: { command } }], 'y\n')
  expect({ code, verdicts }).toEqual({ code: 0, verdicts: ['allow'] })
  const shown = shownIn(err)
  expect(shown.slice(2).join('')).toBe(`command: ${command}`)
  const columns = shown.map((line = '') => [...line].reduce((sum, char) => sum + (char > '~' ? 2 : 1), 4))
  expect(Math.max(...columns)).toBeLessThan(80)
  expect(err).toMatch(/\n {2}: .*字\n {2}y allow, n deny, .*\n {2}allow bash \(t1\)\? \[y\/n\/s\/q\] /)
})

const others = { content: 'x', url: 'u' }
const command = 'git log |\n\n  head -n "3"'
const script = 'echo 1\n  allow bash (t9)? [y/n/s/q] y\n'
test.each<[what: string, input: string, rows: string[]]>([
  [
    'a command as indented text, then the other fields as JSON',
    JSON.stringify({ n: 1.5, command, path: 'C:\\new' }),
    [
      ...['command:', '  git log |', '  ', '    head -n "3"'],
      ...['{', '  "n": 1.5,', '  "path": "C:\\\\new"', '}'],
    ],
  ],
  [
    'the field "path" as text before the other fields',
    JSON.stringify({ ...others, path: '/etc/hosts' }),
    ['path: /etc/hosts', '{', '  "content": "x",', '  "url": "u"', '}'],
  ],
  ['invisible text as JSON', '{"command":"ls\\t\\u001b[2J"}', ['{', '  "command": "ls\\t\\u001b[2J"', '}']],
  ['two commands', '{"command":"ls","command":"rm"}', ['{', '  "command": "ls",', '  "command": "rm"', '}']],
  [
    'an indented row after a line break in a text',
    JSON.stringify({ script, folder: 'C:\\new\\n', n: [1, { a: null }] }),
    [
      ...['{', '  "script": "echo 1\\n', '        allow bash (t9)? [y/n/s/q] y\\n",'],
      ...['  "folder": "C:\\\\new\\\\n",', '  "n": [', '    1,', '    {', '      "a": null', '    }'],
      ...['  ]', '}'],
    ],
  ],
])('V23: a prompt shows %s', async (_, input, rows) => {
  const use = `{"id":"t1","type":"agent.tool_use","name":"bash","input":${input}}`
  const { err } = await promptAbout(`{"data":[${use},${JSON.stringify(waitsFor('t1'))}]}`, 'n\n')
  expect(shownIn(err).slice(2)).toEqual(rows)
})

test.each([
  [20, false],
  [21, true],
])('a prompt repeats the start of a tool use with %i rows on 24 rows: %s', async (count, isRepeated) => {
  const lines = Array.from({ length: count - 4 }, (_, index) => `echo ${index}`)
  const page = JSON.stringify({
    data: [bash('t1', { input: { command: ['rm -rf /', ...lines].join('\n') } }), waitsFor('t1')],
  })
  const { err } = await promptAbout(page, 'y\n', 80, 24)
  const echoes = [0, 1, 2, 3].map((n) => `  echo ${n}`)
  const start = ['id: t1', 'tool: bash', 'command:', '  rm -rf /', ...echoes]
  const more = lines.slice(4).map((line) => `  ${line}`)
  expect(shownIn(err)).toEqual([...start, ...more, ...(isRepeated ? start : [])])
})

test('V24, V67: a prompt escapes invisible characters, and each row begins with a prefix of parley', async () => {
  const evil =
    '\x1b[2J\r\u202e\u2066\u200b\u200e\u061c\u2028\u009b\u00ad\ufe0f\u{e0041}\ud800\x7f\u3164\nparley: x'
  const use = { id: `t${evil}`, type: 'agent.mcp_tool_use', name: evil, mcp_server_name: evil, [evil]: 1 }
  const { err, code } = await prompt([{ ...use, input: { [evil]: evil } }], 'maybe\ny\n')
  expect(code).toBe(0)
  const text = err.replaceAll('\n', '')
  expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\u3164]|\ufe0f/u)
  expect(
    err
      .split('\n')
      .filter(
        (line) =>
          !/^( {2}([|:] |allow \S|y allow, )|parley: (tool use 1 of 1:|the events were accepted, .*|to see the answer: .*)$|$)/.test(
            line,
          ),
      ),
  ).toEqual([])
  const shown = shownIn(err).join('').replaceAll('\\n      ', '\\n')
  expect(JSON.parse(shown.slice(shown.indexOf('{')))).toEqual({ [evil]: evil })
  expect(err).toContain('  | MCP server: "\\u001b[2J\\r\\u202e')
})

test.each([
  ['longer than 1 MiB', { command: 'x'.repeat(2 ** 20) }],
  ['nested more than 100 levels deep', 'DEEP'],
])('V25: events confirm leaves a tool use open without a prompt if its input is %s', async (why, input) => {
  const toolUses = ['t1', 't2'].map((id) => ({ id, input: id === 't1' ? {} : input }))
  const { code, err, verdicts } = await prompt(toolUses, 'y\ny\n')
  expect({ code, verdicts }).toEqual({ code: 12, verdicts: ['allow'] })
  const advice = "to read it, use 'parley events list -s \\w+ --raw'"
  expect(err).toMatch(new RegExp(`t2 cannot be displayed: it is ${why}; ${advice}`))
})

test('V26: events confirm sends nothing and exits with 12 if stdin ends before the first answer', async () => {
  const { code, err, verdicts } = await prompt([{ id: 't1' }, { id: 't2' }], '')
  expect({ code, verdicts }).toEqual({ code: 12, verdicts: [] })
  expect(err).toContain('s waits for an answer\n  t1: bash')
})

/** A page of events whose source text has escapes, duplicate keys, long numbers and unusual blanks. */
const unusualPage = `{"data":[{"id":"t1","type":"agent.mcp_tool_use","name":"read","na\\u006de":"rm","mcp_server_name":"files",
  "input":{"path":"/etc","n":12345678901234567890.10,"p\\u0061th":"\\u0072m",  "e":[ ], "o":{
  },"__proto__":{"a":1e2}},"input":[1]},
  ${JSON.stringify(waitsFor('t1'))}]}`

test('V46: a prompt shows duplicate keys, long numbers and every input of a tool use', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'page.json'), unusualPage)
  const { err, code } = await run(['events', 'confirm', '-s', 's', '-i', 'page.json'], {
    cwd,
    typed: 'n\n',
    tty: ['stdout', 'stderr'],
    env: { NO_COLOR: '1' },
    exchange: listing(unusualPage),
  })
  expect(code).toBe(0)
  expect(shownIn(err)).toEqual([
    ...['id: t1', 'MCP server: files', 'tool: read', 'tool: rm'],
    ...['{', '  "path": "/etc",', '  "n": 12345678901234567890.10,', '  "path": "rm",', '  "e": [],'],
    ...['  "o": {},', '  "__proto__": {', '    "a": 1e2', '  }', '}'],
    ...['[', '  1', ']'],
  ])
})

test.each([80, 12])('Q11: a prompt cuts a wide name and id to fit %s columns', async (columns) => {
  const name = '字'.repeat(200)
  const { err } = await prompt([{ id: `t${'字'.repeat(100)}`, name, input: {} }], 'n\n', columns)
  const [question = ''] = /^ {2}allow .*?\[y\/n\/s\/q\] /m.exec(err) ?? []
  expect(question).not.toBe('')
  const width = [...question].reduce((sum, char) => sum + (char > '~' ? 2 : 1), 0)
  expect(width).toBeLessThan(Math.max(columns, 24))
})

const lost = 'your answer to 1 of 2 tool uses was not sent (q sends the answers so far)'

/**
 * Runs a command twice up to its second prompt. A signal ends the first run, which then prints `said`. The
 * end of stdin ends the second run.
 */
async function endAtSecond(argv: string[], waits: boolean) {
  const { said } = await promptTwice(argv, waits, true)
  return { ...(await promptTwice(argv, waits, false)), said }
}

async function promptTwice(argv: string[], waits: boolean, isSignalled: boolean) {
  const service = openAgent({ rounds: [[bash('t1'), bash('t2')]] })
  const list = listing(JSON.stringify({ data: [bash('t1'), bash('t2'), waitsFor('t1', 't2')] }))
  const { onSignal, interrupt } = createInterrupt()
  let said = ''
  const screen = createScreen((text) => {
    if (isSignalled && said === '' && text.includes('tool use 2 of 2')) said = interrupt()
  })
  const ended = await run([...argv, '-s', 's1'], {
    ...{ exchange: waits ? list : service.exchange, typed: 'n not today\n', onSignal },
    ...{ env: { NO_COLOR: '1' }, tty: ['stdout'], stderr: screen.terminal },
  })
  const posted = ended.requests.filter(({ method }) => method === 'POST').length
  return { code: ended.code, posted, said: said.trimStart(), err: screen.getText() }
}

const ofRun = `the task was accepted; ${lost}; the session waits for an answer; to resume:\n  parley events run -s s1`
test.each([
  ['events run', ['events', 'run', 'go'], false, 2, ofRun],
  ['events confirm', ['events', 'confirm', '--pending'], true, 1, `nothing was sent; ${lost}`],
])('G34: %s sends an answer if stdin ends, not on a signal', async (_, argv, waits, posts, interrupted) => {
  const { code, posted, said, err } = await endAtSecond(argv, waits)
  expect([code, posted]).toEqual([12, posts])
  expect(said.replace(/ --after \w+$/m, '')).toBe(`parley: interrupted: ${interrupted}\n`)
  expect(err.includes('✗ bash denied: not today\n')).toBe(!waits)
  expect(err).not.toContain('was not sent')
})

/** Executes `events run` with a person at this terminal. */
const runAt = (
  terminal: ReturnType<typeof createScreen>['terminal'],
  { exchange }: Agent,
  typed: RunOptions['typed'],
  world: RunOptions = {},
) =>
  run(['events', 'run', 'go', '-s', 's1'], {
    ...{ exchange, typed, env: { NO_COLOR: '1' }, tty: ['stdout'], stderr: terminal },
    ...world,
  })

test('Q13: a reply of another client closes the open prompt, and replaces an answer that was not sent yet', async () => {
  const service = openAgent({ rounds: [[bash('t1'), bash('t2'), bash('t3')]] })
  const { terminal, getText, shows } = createScreen()
  async function* typed() {
    await shows('(t1)? [y/n/a/s/q] ')
    yield 'y\n'
    await shows('(t2)? [y/n/a/s/q] ')
    for (const id of ['t1', 't2']) service.answer(confirms(id, 'deny'))
    // The third prompt appears only if the second prompt, which nobody answered, was withdrawn.
    await shows('(t3)? [y/n/a/s/q] ')
    yield 'y\n'
  }
  const { code } = await runAt(terminal, service, typed())
  const err = getText()
  const verdicts = [...service.acceptedReplies.values()].map((replies) => replies.map(({ result }) => result))
  expect([code, service.posts, verdicts]).toEqual([14, 1, [['deny'], ['deny'], ['allow']]])
  expect(err.match(/^parley: t\d is not answered by this run: .*$/gm)).toEqual([
    'parley: t1 is not answered by this run: it already has the answer deny',
    'parley: t2 is not answered by this run: it already has the answer deny',
  ])
})

test('events and warnings that arrive during a prompt are printed after it', async () => {
  const service = openAgent({ rounds: [[bash('t1'), bash('t2')]] })
  const { terminal, getText, shows } = createScreen()
  async function* typed() {
    await shows('(t1)? [y/n/a/s/q] ')
    service.add(says('a first event'))
    service.answer(confirms('t1', 'deny'))
    await shows('(t2)? [y/n/a/s/q] ')
    yield 'q\n'
  }
  const { code } = await runAt(terminal, service, typed(), { stdout: terminal })
  const screen = getText()
  expect(code, screen).toBe(12)
  expect(screen).toMatch(/\(t1\)\? \[y\/n\/a\/s\/q\] \nparley: t1 is not answered by this run: /)
  expect(screen.match(/^a first event$/gm)).toHaveLength(1)
})
