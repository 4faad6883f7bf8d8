import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bash, custom, endTurn, interrupt, running, says, userSays } from '../../harness/events.ts'
import { answering, createInterrupt, type RunOptions, run } from '../../harness/run.ts'
import type { Outcome } from '../../harness/session-service.ts'
import {
  always,
  atTerminal,
  createSessionService,
  getLockPath,
  openAgent,
} from '../../harness/session-service.ts'

const resumedText =
  'the audit file shows that an earlier run sent this task: this run continues the session and does not send the task again'
const check = "check with 'parley events list -s s1' whether the event list contains the task"
const advice =
  'once the list contains the task, run your command again to continue the session; to send the task a second time, name another --audit file'

const isPost = ({ method }: { method: string }) => method === 'POST'

const argv = ['events', 'run', '-s', 's1']
const warning = "parley: the session's last user.message is the same task: parley sends the task once more\n"

const createNewAudit = (count: number) => ['--audit', `a${count}.ndjson`]
test.each<[string, (count: number) => string[]]>([
  ['without --audit', () => []],
  ['with a new audit file', createNewAudit],
])("events run %s warns before it sends the session's last task again, also with -q", async (_, flags) => {
  const taskOutcome = (count: number): Outcome => (count === 3 ? { status: 400 } : 'takes')
  const agent = openAgent({ rounds: [[says('one')], [says('two')], [says('three')]], taskOutcome })
  const isWarned = async (task: string) =>
    (await agent.run([...argv, '-q', task, ...flags(agent.tasks)])).err.includes(warning)
  const tasks = ['go', 'go', 'go', 'go on', 'go']
  const warned: boolean[] = []
  for (const task of tasks) warned.push(await isWarned(task))
  expect(warned).toEqual([false, true, true, false, false])
  expect(agent.tasks).toBe(5)
})

test.each([
  ['y\n', 0, 2, []],
  ['n\n', 15, 1, []],
  ['n\n', 15, 1, createNewAudit(1)],
])('events run on a terminal asks before repeating a task: %j', async (typed, expected, tasks, flags) => {
  const agent = openAgent({ rounds: [[says('one')], [says('two')]] })
  const first = await agent.run([...argv, 'go'], atTerminal(''))
  expect(first.err).not.toContain('[y/N]')
  const { code, err } = await agent.run([...argv, 'go', ...flags], atTerminal(typed))
  expect({ code, tasks: agent.tasks }).toEqual({ code: expected, tasks })
  const question = 'is the same task\nSend the task once more? [y/N] '
  expect(err).toContain(`parley: the session's last user.message ${question}`)
  expect(err.endsWith('parley: the task was not sent again\n  nothing was sent\n')).toBe(expected === 15)
})

const waits = 's1 waits for an answer to a tool use\n  '
const confirm = `${waits}answer with: parley events confirm -s s1 t1 --allow`
const sendResult = `${waits}to send a result: parley events send -s s1 --custom-tool-result c1=TEXT`
test.each([
  ['events run', 400, bash('t1'), `${confirm}\n  or with --deny`],
  ['events run', 409, custom('c1'), sendResult],
  ['events send --follow', 409, bash('t1'), confirm],
])('%s prints how to answer waiting tool uses after a %i to a task', async (command, status, use, hint) => {
  const words = command.split(' ')
  const refuse = (): Outcome => ({ status })
  const taskOutcome = (count: number): Outcome => (count === 1 ? 'takes' : { status })
  const agent = openAgent({ rounds: [[use]], outcome: refuse, taskOutcome })
  expect((await agent.run(['events', 'run', 'go'])).code).toBe(12)
  const { code, err } = await agent.run([...words, 'on'])
  expect({ code, err }).toEqual({ code: 4, err: expect.stringContaining(`\n  ${hint}\n`) })
  expect((await agent.run([...words, '--interrupt'])).err).not.toContain(hint)
})

test.each([
  ['waiting on responses to events [t1]', true],
  ['send user.tool_confirmation first', true],
  ['a tool_use is open', true],
  ['the session requires action', true],
  ['tool calls need an approval', true],
  ['the budget is used up', false],
])('events send prints how to answer tool uses only if a 400 names them: %s', async (message, isHinted) => {
  const body = JSON.stringify({ error: { type: 'invalid_request_error', message } })
  const { err } = await createSessionService({ posts: [{ fault: { status: 400, body } }] }).run([
    ...['events', 'send', 'go'],
  ])
  const hint = 'if tool uses wait for an answer: parley events confirm -s s1 --pending'
  expect(err.includes(hint)).toBe(isHinted)
})

test('Y134: events run --audit sends a finished task again, and the audit file has the lines of both runs', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]] })
  expect((await agent.runTask(['go'])).code).toBe(0)
  expect(agent.taskLines()).toEqual(['sent', 'accepted', 'done'])
  const [first] = agent.lines('a.ndjson')
  expect(first).toMatchObject({ session: 's1', toolUse: null, known: { alike: 0 } })
  expect(first?.task).toMatch(/^[0-9a-f]{32}$/)
  expect(await agent.runTask(['go'])).toMatchObject({ code: 0, err: 'parley: the agent gave no answer\n' })
  const second = agent.lines('a.ndjson').findLast(({ event, task }) => task && event === 'sent')
  expect(second?.known).toMatchObject({ alike: 1 })
  expect((await agent.runTask(['another'])).code).toBe(0)
  expect(agent.taskLines()).toEqual(Array(3).fill(['sent', 'accepted', 'done']).flat())
  expect(agent.tasks).toBe(3)
})

test('events run --audit warns if it repeats an unfinished task, or sends another task in addition', async () => {
  const agent = openAgent({ rounds: [], end: running })
  const readWarnings = async (task: string, options?: RunOptions) => {
    const { code, err } = await agent.runTask([task, '-q', '--deadline', '60'], options)
    const warnings = {
      repeated: 'sent this task and did not finish it',
      added: 'sends this task in addition',
    }
    expect(code).toBe(15)
    return Object.entries(warnings).flatMap(([name, text]) => (err.includes(text) ? [name] : []))
  }
  expect(await readWarnings('one')).toEqual([])
  expect(await readWarnings('two')).toEqual(['added'])
  expect(await readWarnings('one', atTerminal('n\n'))).toEqual(['repeated'])
  expect([await readWarnings('one'), agent.tasks]).toEqual([['repeated', 'added'], 3])
  expect([await readWarnings('one'), agent.tasks]).toEqual([[], 3])
  agent.add(interrupt, endTurn)
  expect([await readWarnings('three'), agent.tasks]).toEqual([[], 4])
})

test('a rerun of events run --audit resumes a task while its tool uses wait, and a denial ends the task', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]], policy: always('ask') })
  expect((await agent.runTask(['go'])).code).toBe(12)
  expect(agent.taskLines()).toEqual(['sent', 'accepted'])
  const waiting = await agent.runTask(['go'])
  expect(waiting).toMatchObject({ code: 12, err: expect.stringContaining(`parley: ${resumedText}\n`) })
  agent.write('p.json', always('deny'))
  expect((await agent.runTask(['go'])).code).toBe(14)
  expect([agent.tasks, agent.taskLines()]).toEqual([1, ['sent', 'accepted', 'done']])
})

test('Y218: after an interrupt, the resume command has a new task that differs from the last task in the audit file', async () => {
  const agent = openAgent({ rounds: [], end: running })
  agent.write('number.json', { type: 'number' })
  const runTask = async (words: string[]) => {
    const { code, err } = await agent.runTask([...words, '--schema', 'number.json', '--deadline', '60'])
    return { code, words: /^ {2}parley events run ('.*?') -s/m.exec(err)?.[1] }
  }
  const interruptTurn = () => agent.add(interrupt, endTurn)
  expect(await runTask(['Go on'])).toEqual({ code: 15, words: undefined })
  interruptTurn()
  expect(await runTask(['Go on'])).toEqual({ code: 15, words: "'Go on, please'" })
  expect(agent.tasks).toBe(1)
  expect(await runTask(['Go on, please'])).toEqual({ code: 15, words: undefined })
  expect(agent.tasks).toBe(2)
  interruptTurn()
  expect(await runTask(['Go on, please'])).toEqual({ code: 15, words: "'Go on'" })
})

test('events run --audit sends a task again if the service certainly did not accept it', async () => {
  const taskOutcome = (count: number): Outcome => (count === 1 ? 'refuses' : 'takes')
  const agent = openAgent({ rounds: [], taskOutcome })
  expect((await agent.runTask(['go'])).code).toBe(4)
  expect(agent.taskLines()).toEqual(['sent', 'refused'])
  expect([(await agent.runTask(['go'])).code, agent.tasks]).toEqual([0, 2])
})

test('Y135: events run resumes a task of unknown delivery if the list shows it, even late', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]], lag: 100, taskOutcome: () => 'resets' })
  const first = await agent.runTask(['go'])
  expect([first.code, agent.taskLines()]).toEqual([10, ['sent', 'unknown']])
  expect(first.err).toContain(
    "  the event may have been accepted: to continue, run the same command with the same --audit again; it looks for the task in the session's event list for up to 30 s\n",
  )
  expect(await agent.runTask(['go'])).toMatchObject({ code: 0, err: expect.stringContaining(resumedText) })
  expect([agent.tasks, agent.taskLines()]).toEqual([1, ['sent', 'unknown', 'accepted', 'done']])
})

test.each([
  [['--audit', 'a.ndjson'], 'to continue, run the same command with the same --audit again; it looks'],
  [[], "check with 'parley events list -s s1' before sending again\n"],
])('a signal while events run %j sends the task prints one instruction', async (flags, instruction) => {
  const agent = openAgent({ rounds: [], taskOutcome: () => 'loses' })
  const { onSignal, interrupt } = createInterrupt()
  let printed = ''
  const exchange: typeof agent.exchange = (request, onSent) => {
    if (!isPost(request)) return agent.exchange(request)
    onSent?.()
    printed = interrupt()
    return agent.exchange(request)
  }
  await agent.run([...argv, 'go', ...flags], { exchange, onSignal })
  expect(printed).toContain(`parley: interrupted: the event may have been accepted: ${instruction}`)
  expect(printed.match(/ again/g)).toHaveLength(1)
})

test('events run exits with 10 and does not repeat a task of unknown delivery if no list shows it', async () => {
  const history = [userSays('go'), endTurn]
  const agent = openAgent({ history, rounds: [], taskOutcome: () => 'loses' })
  for (const _ of [1, 2]) expect((await agent.runTask(['go'])).code).toBe(10)
  expect([agent.tasks, agent.taskLines()]).toEqual([1, ['sent', 'unknown']])
})

test.each([
  [0, 'shows', 'two\n', ['sent', 'unknown', 'accepted', 'done']],
  [10, 'does not show', '', ['sent', 'unknown']],
])('Y223: events run exits with %i if the list %s its old task', async (expected, verb, answer, lines) => {
  const arrives = verb === 'shows'
  const history = [userSays('night 1'), says('one'), endTurn]
  const taskOutcome = () => (arrives ? 'resets' : 'loses') as Outcome
  const agent = openAgent({ history, rounds: [[says('two')]], lag: 100, taskOutcome })
  expect((await agent.runTask(['night 2', '--last'])).code).toBe(10)
  const { code, out, err, requests } = await agent.runTask(['--no-stdin', '--last'])
  expect({ code, out, posts: requests.filter(isPost) }).toEqual({ code: expected, out: answer, posts: [] })
  expect(agent.taskLines()).toEqual(lines)
  if (arrives) return
  expect(err).toContain('an earlier run began to send the task, and it is not known whether it arrived\n')
  expect(err).toContain(`  ${check}\n  ${advice}\n`)
  expect(err).toContain('  parley events run -s s1 --no-stdin --policy p.json --audit a.ndjson --last\n')
  const forPrograms = await agent.runTask(['--no-stdin', '--last', '--errors', 'json', '-q'])
  const hints = [check, advice]
  expect(JSON.parse(forPrograms.err).error.hints).toEqual(hints)
})

test('Y226: a rerun of events run --audit resumes an accepted task whose response was cut, and sends nothing twice', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]], taskOutcome: () => 'cuts' })
  const first = await agent.runTask(['go', '--errors', 'json'])
  expect(JSON.parse(first.err).error).toMatchObject({ exit: 8, sent: 'yes', retry: 'later' })
  expect(await agent.runTask(['go'])).toMatchObject({ code: 0, err: expect.stringContaining(resumedText) })
  expect(agent.tasks).toBe(1)
})

test('Y138: events run exits with 10 and prints no older answer if the list does not show the accepted task', async () => {
  let shown: number | undefined
  const history = [userSays('old'), says('old'), endTurn]
  const agent = openAgent({ history, rounds: [[says('new')]], onList: () => shown })
  expect((await agent.runTask(['go', '--last'])).out).toBe('new\n')
  agent.cutAudit('accepted')
  // The list never shows the task: first it shows all 3 earlier events, then 2, then none.
  for (const count of [3, 2, 0]) {
    shown = count
    for (const words of [['go'], ['--no-stdin']]) {
      const { code, out, err, requests } = await agent.runTask([...words, '--last'])
      const posts = requests.filter(isPost)
      expect({ count, code, out, posts }).toEqual({ count, code: 10, out: '', posts: [] })
      expect(err).toContain('the task was accepted, but the session does not show it yet\n  check with ')
      expect(err).toContain(`${advice}\n`)
      expect(err).toContain('  parley events run -s s1 --no-stdin')
    }
  }
  expect(agent.taskLines()).toEqual(['sent', 'accepted'])
  // The printed command works with its --audit flag, and also without the flag.
  const failed = await agent.runTask(['--no-stdin', '--last', '--errors', 'json'])
  const { resume } = JSON.parse(failed.err).error as { resume: string[] }
  shown = 3
  const withoutAudit = resume.toSpliced(resume.indexOf('--audit'), 2)
  expect(await agent.run(withoutAudit)).toMatchObject({ code: 0, out: 'old\n' })
  expect(agent.taskLines()).toEqual(['sent', 'accepted'])
  shown = undefined
  expect(await agent.run(resume)).toMatchObject({ code: 0, out: 'new\n' })
  expect([agent.tasks, agent.taskLines()]).toEqual([1, ['sent', 'accepted', 'done']])
})

/** Creates a host that dies at point `at`: before a request, after a response, or after an audit line. */
function dieAt(at: number, { exchange, cwd, timers }: ReturnType<typeof openAgent>): RunOptions {
  let left = at
  let isDead = false
  let size = 0
  const live = (isPoint: boolean) => {
    isDead ||= isPoint && left-- === 0
    if (isDead) throw new Error('killed')
  }
  const readSize = () => statSync(join(cwd, 'a.ndjson'), { throwIfNoEntry: false })?.size ?? 0
  const now = () => {
    const hasGrown = readSize() > size
    size = readSize()
    // Once the lock file is removed, the dead run only prints why it ended, so the clock no longer throws.
    if (!isDead || existsSync(join(cwd, getLockPath('a.ndjson')))) live(hasGrown)
    return timers.now()
  }
  return {
    async exchange(request) {
      live(true)
      const response = await exchange(request)
      live(true)
      return response
    },
    timers: {
      random: timers.random,
      now,
      wallTime: now,
      // After the simulated crash, timers never fire.
      async wait(milliseconds, signal) {
        await timers.wait(milliseconds, signal)
        if (isDead) await new Promise(() => {})
      },
    },
  }
}

test('Y56, Y136: after a kill at any request or audit line, a rerun of events run sends nothing twice (needs sh)', async () => {
  const words = ['go', '--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs']
  const ends: string[] = []
  for (let at = 0; ; at++) {
    const agent = openAgent({ rounds: [[bash('t1')], [custom('c2')]] })
    const first = await agent.runTask(words, dieAt(at, agent))
    if (first.code !== 1) {
      expect(first.code).toBe(0)
      break
    }
    const second = await agent.runTask(words)
    const file = join(agent.cwd, 'runs')
    const runs = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const twice = [...agent.acceptedReplies].filter(([, answers]) => answers.length > 1)
    const isTaskUnknown = second.err.includes('began to send the task, and it is not known')
    expect({ at, tasks: agent.tasks, twice, runs }).toEqual({
      at,
      tasks: isTaskUnknown ? 0 : 1,
      twice: [],
      runs: [...new Set(runs)],
    })
    // A kill before the response leaves the delivery of the task or the reply unknown.
    if (second.code === 10) expect(second.err).toMatch(/it is not known whether (it arrived|the answer to)/)
    else expect({ at, code: second.code, err: second.err }).toMatchObject({ at, code: 0 })
    ends.push(`${agent.taskLines().join(' ')} ${second.code}`)
  }
  expect(new Set(ends)).toEqual(new Set(['sent accepted done 0', 'sent accepted 10', 'sent 10']))
}, 120_000)

test.each([
  ['the next page of the list repeats', { next_page: 'p' }, 'does not end: its pages repeat'],
  ['the list has no cursor', { has_more: true }, 'has more items, but no cursor for the next page'],
])('events run and send --follow print that nothing was sent if %s', async (_, more, problem) => {
  const exchange = answering(JSON.stringify({ data: [], ...more }))
  for (const words of ['run x --no-stdin', 'send x --follow']) {
    const { code, err, requests } = await run(`events ${words} -s s1`.split(' '), { exchange })
    expect([code, requests.some(isPost)]).toEqual([8, false])
    const text = `parley: the session cannot be followed: the list of events ${problem}\n  nothing was sent\n`
    expect(err).toContain(text)
  }
})
