import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { bash, type Event, endTurn, interrupt, running, says, userSays } from '../../harness/events.ts'
import { type RunOptions, temporaryFolder } from '../../harness/run.ts'
import { type AgentScript, always, createSignalOptions, openAgent } from '../../harness/session-service.ts'
import { createFailingStdout } from '../../harness/stdout.ts'

const schema = { type: 'object', required: ['verdict'] }
const schemaText = `Answer with nothing but JSON that fits this JSON Schema:\n${JSON.stringify(schema)}`

/** Creates an agent, and executes `events run`. By default, the policy allows every tool use. */
async function runOn(script: AgentScript, words: string[], options?: RunOptions) {
  const agent = openAgent(script)
  agent.write('s.json', schema)
  const runAgain = (again: string[], world = options) =>
    agent.run(['events', 'run', '-s', 's1', '--policy', 'p.json', ...again], world)
  const read = (name: string) =>
    existsSync(join(agent.cwd, name)) ? readFileSync(join(agent.cwd, name), 'utf8') : undefined
  return { ...(await runAgain(words)), agent, read, runAgain }
}

const before = [userSays('before'), says('old'), endTurn]

test.each([['--last'], ['-o', 'a.txt'], ['--schema', 's.json']])(
  'Y122: events run %s exits with 8 if no message follows the task',
  async (...flags) => {
    const { code, err, read, runAgain } = await runOn({ history: before, rounds: [] }, ['do it', ...flags])
    expect({ code, file: read('a.txt') }).toEqual({ code: 8, file: undefined })
    expect(err).toContain('parley: the agent gave no answer\n')
    expect((await runAgain(['another'])).code).toBe(0)
  },
)

const unanswered = [...before, userSays('more'), endTurn]
const empty: Event = { type: 'agent.message', content: [] }
test.each<[string, AgentScript, string[], string | undefined]>([
  ['warns with -q if no message follows the task', { rounds: [] }, ['do it'], 'the agent gave no answer'],
  ['warns with -q if the answer has no text', { rounds: [[empty]] }, ['do it'], 'the answer has no text'],
  ['warns with -q about the last task', { history: unanswered, rounds: [] }, [], 'the agent gave no answer'],
  ['does not warn if the session never had a task', { history: [endTurn], rounds: [] }, [], undefined],
])('events run without --last exits with 0 and %s', async (_, script, words, warning) => {
  const { code, err, agent } = await runOn(script, [...words, '-q', '--report', 'r.json'])
  expect({ code, err }).toEqual({ code: 0, err: warning === undefined ? '' : `parley: ${warning}\n` })
  const missingAnswers = warning === undefined ? 0 : 1
  expect(agent.lines('r.json')[0]).toMatchObject({ warnings: { missingAnswers } })
})

const inThread = says('of a thread', { session_thread_id: 'th1' })
const firstRound = [says('first'), bash('t1')]
const twoRounds = [firstRound, [says('the answer'), inThread]]
const asks = [[says('half'), bash('t1')], [says('done without')]]
test.each<[string, Parameters<typeof openAgent>[0], number, string]>([
  ['the last message of the main thread', { history: before, rounds: twoRounds }, 0, 'the answer\n'],
  ['the answer if a tool use was denied', { rounds: asks, policy: always('deny') }, 14, 'done without\n'],
  ['nothing if the deadline passes', { rounds: [[says('half')]], end: running }, 15, ''],
])('Y120, Y124: events run --last prints %s', async (_, script, ...end) => {
  const { code, out } = await runOn(script, ['do it', '--last', '--deadline', '30s'])
  expect([code, out]).toEqual(end)
})

test.each([
  ['--last', ['--last']],
  ['without --last', []],
])('Y126: events run %s exits with 15 if an interrupt ended the turn', async (_, flags) => {
  const history = [userSays('one'), says('half'), interrupt, endTurn]
  const words = [...flags, '--report', 'r.json']
  const { code, out, err, agent, runAgain } = await runOn({ history, rounds: [] }, words)
  expect({ code, out }).toEqual({ code: 15, out: '' })
  expect(err).toContain('parley: s1 was interrupted, and nothing was sent since\n')
  expect(err).toMatch(/^ {2}parley events run 'Go on' -s s1 --no-stdin --policy p.json/m)
  const resume = ['events', 'run', 'Go on', '-s', 's1', '--no-stdin', '--policy', 'p.json', ...words]
  expect(agent.lines('r.json')[0]).toMatchObject({ exit: 15, resume })
  for (const event of [userSays('two'), says('of two'), endTurn]) agent.add(event)
  expect(await runAgain(['--last'])).toMatchObject({ code: 0, out: 'of two\n' })
})

describe.each([
  ['show', true],
  ['omit', false],
])('events run finds events of other clients in lists, also if streams %s them', (_, echoes) => {
  const used: Event = { type: 'span.model_request_end', model_usage: { input_tokens: 1000 } }
  const interrupted = [[says('half'), used, interrupt, endTurn]]
  const theirs = userSays('something else')

  test.each([
    ['prints no answer', []],
    ['does not claim at its limit that the agent finished', ['--max-total-tokens', '100']],
  ])("events run exits with 15 after another client's interrupt, and %s", async (_, flags) => {
    const { code, out, err } = await runOn({ rounds: interrupted, echoes }, ['do it', '--last', ...flags])
    expect({ code, out }).toEqual({ code: 15, out: '' })
    expect(err).toContain('parley: s1 was interrupted, and nothing was sent since\n')
    const resume = ["  parley events run 'Go on' -s s1 --no-stdin --policy p.json --last", ...flags]
    expect(err).toContain(`${resume.join(' ')}\n`)
    expect(err).not.toContain('already finished')
  })

  test('events run does not record an interrupted task as done, and a rerun does not send the task again', async () => {
    const agent = openAgent({ rounds: interrupted, echoes })
    for (const note of ['', 'this run continues the session and does not send the task again\n']) {
      const { code, err } = await agent.runTask()
      expect({ code, tasks: agent.tasks }).toEqual({ code: 15, tasks: 1 })
      expect(err).toContain(note)
    }
    expect(agent.taskLines()).toEqual(['sent', 'accepted'])
  })

  const isNamed = /another client sent a user.message \(e\d\) after the task/
  test.each<[string, Event[], number, string, string]>([
    ['prints an earlier answer', [says('ours'), theirs, says('theirs')], 0, 'ours\n', ''],
    ['exits with 8 without one', [theirs, says('theirs')], 8, '', 'not known which message answers'],
    ['exits with 15 after an interrupt', [says('half'), interrupt, theirs], 15, '', 'interrupted: another'],
  ])('events run --last reports a task of another client and %s', async (_, round, exit, answer, message) => {
    const { code, out, err } = await runOn({ rounds: [[...round, endTurn]], echoes }, ['do it', '--last'])
    expect({ code, out }).toEqual({ code: exit, out: answer })
    expect(err).toMatch(isNamed)
    expect(err).toContain(message)
    expect(err).not.toContain('nothing was sent since')
  })
})

test('Y127: events run --last on a terminal prints the other events on stderr, one per line', async () => {
  const rounds = [[says('a\nb'), says('the answer')]]
  const { out, err } = await runOn({ rounds }, ['do it', '--last'], { tty: ['stdout', 'stderr'] })
  expect({ out, err }).toEqual({ out: 'the answer\n', err: expect.stringContaining('— agent.message a') })
})

test('Y128: events run -o writes the whole answer, in addition to the transcript on stdout', async () => {
  const rounds = [[says('first'), says('the answer')]]
  const both = await runOn({ rounds }, ['do it', '-o', 'a.txt', '--report', 'r.json'])
  expect(both.out).toContain('\nfirst\nthe answer\n')
  expect(both.read('a.txt')).toBe('the answer\n')
  const report = { id: 'e4', stopReason: 'end_turn', session: 's1', files: ['a.txt'], resume: null }
  expect(both.agent.lines('r.json')[0]).toMatchObject(report)
  const alone = await runOn({ rounds }, ['do it', '-o', 'a.txt', '--last'])
  expect({ out: alone.out, file: alone.read('a.txt') }).toEqual({ out: '', file: 'the answer\n' })
  const raw = await runOn({ rounds }, ['do it', '-o', 'a.txt', '--raw'])
  expect(raw.out).toContain('{"id":"e4","processed_at"')
  expect(raw.read('a.txt')).toBe('the answer\n')
})

test.each<[number, string, Event[], Event, string | undefined]>([
  [12, 'saves the text as FILE.part', [says('half'), bash('t1')], endTurn, 'half'],
  [12, 'creates no FILE.part without a text', [bash('t1')], endTurn, undefined],
  [15, 'saves the text as FILE.part', [says('half')], running, 'half'],
])('Y129: events run that exits with %i keeps the file of -o, and %s', async (exit, _, round, end, text) => {
  const agent = openAgent({ rounds: [round], end, policy: always('ask') })
  agent.write('a.txt', 'old')
  const { code, err } = await agent.runTask(['do it', '-o', 'a.txt', '--deadline', '30s'])
  expect(code).toBe(exit)
  const read = (name: string) => readFileSync(join(agent.cwd, name), 'utf8')
  expect(read('a.txt')).toBe('old')
  const files = readdirSync(agent.cwd).filter((name) => name.startsWith('a.txt.'))
  expect(files.map(read)).toEqual(text === undefined ? [] : [text])
  expect(err.includes('the received data is saved as a.txt.part')).toBe(text !== undefined)
  expect(err).toMatch(/to resume:\n {2}parley events run -s s1 --no-stdin .* --output a\.txt --deadline 30s/)
})

test('Y150: events run exits with 11 or 2 and sends nothing if -o cannot be written', async () => {
  const { code, requests, runAgain } = await runOn({ rounds: [] }, ['do it', '-o', 'none/a.txt'])
  expect([code, requests]).toEqual([11, []])
  const same = await runAgain(['do it', '-o', 'p.json'])
  expect([same.code, same.requests]).toEqual([2, []])
  expect(same.err).toContain('--policy and -o are the same file')
})

const fits = '```json\n{"verdict": 1.0}\n```'

const words = ['do it', '--schema', 's.json']

test('Y151: events run --schema checks only the last message, and prints its JSON as the agent wrote it', async () => {
  const rounds = [[says('I begin'), bash('t1')], [says(fits)]]
  const { code, out, err, agent } = await runOn({ rounds }, words)
  expect({ code, out, err }).toEqual({ code: 0, out: '{"verdict": 1.0}\n', err: '' })
  expect(agent.events[0]?.content).toEqual(['do it', schemaText].map((text) => ({ type: 'text', text })))
})

test('Y152: events run --schema exits with 8 and saves an answer that does not match, and prints a denial', async () => {
  const rounds = [[says(fits), bash('t1')], [says('{}')]]
  const { code, out, err } = await runOn({ rounds, policy: always('deny') }, words)
  expect({ code, out }).toEqual({ code: 8, out: '' })
  expect(err).toContain("answer does not match s.json: $: required: must have required property 'verdict'")
  const savedPath = /; the received data is saved as (\S+\.txt)\n/.exec(err)?.[1] ?? ''
  expect(readFileSync(savedPath, 'utf8')).toBe('{}')
  expect(err).toContain('the answer begins: {}')
  expect(err).toContain('\n  deny bash {"command":"ls"} t1 (default)\n')
  const file = await runOn({ rounds: [[says('{}')]] }, [...words, '-o', 'a.json'])
  expect([file.code, file.read('a.json'), file.read('a.json.part')]).toEqual([8, undefined, '{}'])
})

test('events run --schema -o --raw writes the JSON to the file and the events to stdout', async () => {
  const raw = await runOn({ rounds: [[says(fits)]] }, [...words, '-o', 'a.json', '--raw'])
  expect([raw.code, raw.read('a.json')]).toEqual([0, '{"verdict": 1.0}\n'])
  expect(raw.out).toContain('"type":"session.status_idle"')
})

test.each([
  [0, 'matches', fits, '{"verdict": 1.0}\n'],
  [8, 'does not match', 'x', ''],
])('Y154: events run --schema exits with %i if the last answer %s', async (exit, _, answer, printed) => {
  const history = [userSays('one'), says(answer), endTurn]
  const { code, out, agent } = await runOn({ history, rounds: [] }, ['--schema', 's.json'])
  expect({ code, out, tasks: agent.tasks }).toEqual({ code: exit, out: printed, tasks: 0 })
})

test('Y155: events run --schema adds its instructions to the last message of a body, and changes nothing else', async () => {
  const stdin =
    '{"events": [{"type":"user.message","content":[{"type":"text","text":"a", "n": 1.0}]}], "x": 2.50}'
  const world = { stdin, stdinKind: 'pipe' } as const
  const { requests } = await runOn({ rounds: [[says(fits)]] }, ['--schema', 's.json'], world)
  const sent = requests.find(({ method }) => method === 'POST')?.text ?? ''
  const block = JSON.stringify({ type: 'text', text: schemaText })
  expect(sent.replaceAll(' ', '')).toBe(stdin.replace('1.0}', `1.0},${block}`).replaceAll(' ', ''))
  const outcome = await runOn({ rounds: [[says(fits)]] }, ['--outcome', 'o', '--schema', 's.json'])
  const note = 'parley: the agent does not get the schema: the task has no message to add it to\n'
  expect([outcome.code, outcome.err]).toEqual([0, note])
})

test('Y161: a rerun of events run sends the task again after an answer that did not match --schema', async () => {
  const agent = openAgent({ rounds: ['no', '{"verdict":1}'].map((text) => [says(text), endTurn]) })
  agent.write('s.json', schema)
  expect([(await agent.runTask(words)).code, agent.tasks]).toEqual([8, 1])
  expect(await agent.runTask(words)).toMatchObject({ code: 0, out: '{"verdict":1}\n' })
  expect(agent.tasks).toBe(2)
})

test('G30: events run saves the answer if a signal arrives during the check by --schema', async () => {
  const TMPDIR = temporaryFolder()
  const text = JSON.stringify(`${'a'.repeat(40)}!`)
  const agent = openAgent({ rounds: [[says(text)]] })
  agent.write('slow.json', { pattern: '^(a+)+$' })
  const { options, sendSignal } = createSignalOptions(() => {})
  let printed = ''
  let checks = 0
  let skipped = 0
  const { code } = await agent.runTask(['do it', '--schema', 'slow.json'], {
    ...options,
    env: { TMPDIR },
    timers: {
      ...realTimers,
      now: () => realTimers.now() + skipped,
      // The first time limit is for the schema itself, the second for the answer.
      wait(milliseconds, signal) {
        const isLimit = milliseconds > 9_000 && milliseconds <= 10_000
        if (!isLimit || ++checks === 1) return realTimers.wait(milliseconds, signal)
        if (checks === 2) printed = sendSignal()
        skipped += milliseconds
        return realTimers.wait(1, signal)
      },
    },
  })
  const saved =
    /^parley: interrupted: the task was accepted; the received data is saved as (\S+); the session/
  const [, path = ''] = saved.exec(printed) ?? []
  expect(readFileSync(path, 'utf8')).toBe(text)
  expect(readdirSync(TMPDIR)).toContain(basename(path))
  expect(code).toBe(8)
})

test('events run --last saves the answer if stdout fails', async () => {
  const TMPDIR = temporaryFolder()
  const world = { stdout: createFailingStdout(0, 'ENOSPC'), env: { TMPDIR } }
  const { code, err } = await runOn({ rounds: [[says('the paid answer')]] }, ['do it', '--last'], world)
  const files = readdirSync(TMPDIR).filter((name) => name.startsWith('parley-'))
  const saved = files.map((name) => readFileSync(join(TMPDIR, name), 'utf8'))
  expect({ code, saved }).toEqual({ code: 11, saved: ['the paid answer'] })
  expect(err).toMatch(/^parley: stdout: no space left on the disk.*\n {2}the task was accepted; .*\n {2}to /)
})

test.each([
  ['--last --fail-on-cut', 'exits with 8 if there is no answer'],
  ['--last --raw', '--last and --raw exclude each other'],
  ['--schema s.json --raw', '--raw and the answer are both for stdout: use -o FILE for the answer'],
  ['--schema p.json', '--schema p.json: $.type: enum: must be'],
  ['--schema s.json --schema-retries 1', "repeat 'events run' with a message about the mismatches"],
  ['--policy broken.json', 'not valid JSON'],
  ['--tool a=b --tool a=c', 'two commands for a'],
])('Y157: events run %s exits with 2, sends nothing and prints "%s"', async (flags, why) => {
  const agent = openAgent({ rounds: [] })
  agent.write('s.json', schema)
  agent.write('p.json', { type: 5 })
  agent.write('broken.json', '{"rules":')
  const { code, err, requests } = await agent.run(['events', 'run', 'do it', ...flags.split(' ')])
  expect([code, requests, err]).toEqual([2, [], expect.stringContaining(why)])
})

test('Y158: events run and follow exit with 13 and print category and explanation of a refusal', async () => {
  const stop_details = { category: 'cyber', explanation: 'not\u001b[31m this' }
  const end = { ...endTurn, stop_reason: { type: 'refusal', stop_details } }
  const { code, out, err, agent } = await runOn({ rounds: [[says('half')]], end }, ['do it', '--last'])
  expect({ code, out }).toEqual({ code: 13, out: '' })
  expect(err).toBe('parley: s1 stopped: refusal (cyber)\n  the service says: not^[[31m this\n')
  const followed = await agent.run(['events', 'follow', '--errors', 'json', '--report', 'f.json'])
  expect(followed.code).toBe(13)
  expect(agent.lines('f.json')[0]?.stopReason).toBe('refusal')
  const message = 's1 stopped: refusal (cyber): not^[[31m this'
  expect(JSON.parse(followed.err).error).toMatchObject({ kind: 'stuck', message })
})
