import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { bash, custom, type Event, endTurn, running, says, userSays, waitsFor } from '../../harness/events.ts'
import { type RunOptions, rejected } from '../../harness/run.ts'
import {
  always,
  createSessionService,
  createSignalOptions,
  openAgent,
  shown,
} from '../../harness/session-service.ts'

const worked = [running, says('done'), endTurn]

/** Runs a task, after which the session cannot be read. `printed` are the words of the resume command. */
async function stop(words: string[], { root = [] as string[], env = {} } = {}) {
  const service: ReturnType<typeof createSessionService> = createSessionService({
    posts: [{ isAccepted: false, fault: { status: 200, body: '{"data":[]}' } }],
    lists: [{ when: () => service.posts.length > 0, fault: { status: 403 } }],
  })
  service.write('p.json', always('ask'))
  service.write('s.json', {})
  const ended = await service.run([...root, 'events', 'run', '--deadline', '1h', ...words], {
    stdinKind: 'terminal',
    env: { PARLEY_SESSION: undefined, ...env },
  })
  return { ...ended, printed: readPrintedCommand(ended.err) }
}

/** Returns the words of the printed command as a shell parses them. */
function readPrintedCommand(err: string): string[] {
  const [, line] = /^ {2}parley (events .*)$/m.exec(err) ?? []
  if (line === undefined) throw new Error(`no command: ${err}`)
  const words = execFileSync('bash', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
  return words.split('\0').slice(0, -1)
}

test('Q40: the resume command of events run has every given flag, but not the sent events', async () => {
  const flags = [
    ...['--workspace-id', 'w 1', '--vendor', 'acme', '--beta', 'skills-2025-10-02'],
    ...['--agents-version', '2024-01-01', '-H', 'X-Trace: a b', '--tool', "x=jq '.a' | cat"],
    ...['--tool-timeout', '5', '--policy', 'p.json', '--last', '-o', 'a.txt', '--schema', 's.json'],
    ...['--agents-url', 'https://other.test', '--retries', '1', '--no-validate', '--audit', 'a.ndjson'],
  ]
  const sent = [
    ...['do it', '--message', 'and', '--interrupt', '--outcome', 'o', '--rubric', 'r'],
    ...['--event', '{"type":"user.interrupt"}', '--file', 'p.json', '--fail-on-empty'],
  ]
  const { code, printed } = await stop([...sent, ...flags, '-s', 's1'], { root: ['--timeout', '7'] })
  const given = flags.map((word) => ({ '-H': '--header', '-o': '--output' })[word] ?? word)
  const start = ['events', 'run', '-s', 's1', '--timeout', '7', '--deadline', '1h']
  expect({ code, printed }).toEqual({ code: 3, printed: [...start, ...given] })
})

test('Q41: the resume command names the session from the environment, and values that start with a hyphen', async () => {
  const { printed } = await stop(['x', '--no-beta', '--tool=-a=b'], { env: { PARLEY_SESSION: '-s 1' } })
  const words = ['events', 'run', '--session=-s 1', '--deadline', '1h', '--no-beta', '--tool=-a=b']
  expect(printed).toEqual(words)
})

test('Q42: the resume command redacts credentials in headers, and parley refuses the redacted headers', async () => {
  const secrets = ['-H', 'X-Api-Key: canary-123456', '-H', 'X-Trace: Bearer canary-654321']
  const { printed, err } = await stop(['x', '-s', 's1', ...secrets])
  const headers = ['--header', 'X-Api-Key: [redacted]', '--header', 'X-Trace: [redacted]']
  expect(printed.slice(-4)).toEqual(headers)
  expect(err).not.toContain('canary')
  const pasted = await createSessionService({}).run(['events', 'run', 'x', ...headers])
  expect(pasted).toMatchObject(rejected(2, /X-Api-Key has the word \[redacted\] .* fill in the value/))
  expect(pasted.requests).toEqual([])
  const file = ['--header', 'X-Api-Key: @s.json']
  expect((await stop(['x', '-s', 's1', ...file])).printed.slice(-2)).toEqual(file)
})

test('Y159: events run prints and reports the confirm command and the resume command if tool uses wait', async () => {
  const agent = openAgent({ rounds: [[bash('t1')]] })
  const resume = 'events run -s s1 --no-stdin --last --report r.json --after e1'.split(' ')
  const { code, err } = await agent.run(['events', 'run', 'x', '--last', '--report', 'r.json'])
  expect(code).toBe(12)
  const confirm = ['answer with: parley events confirm -s s1 t1 --allow', 'or with --deny']
  const lines = ['s1 waits for an answer', 't1: bash {"command":"ls"}', ...confirm]
  expect(err).toBe(`parley: ${[...lines, 'to resume:', `parley ${resume.join(' ')}`].join('\n  ')}\n`)
  const message = lines.join('; ').replace('answer; ', 'answer: ')
  expect(agent.lines('r.json')[0]).toMatchObject({ resume, message })
})

test('the resume command does not name an earlier task while the sent task has no id', async () => {
  const later = { listed: 3000, streamed: 3000 }
  const service = createSessionService({
    history: [running, userSays('first')],
    posts: [{ response: 'empty', posted: later, next: [shown(endTurn, { after: 4000 }), ...worked] }],
  })
  const { code, err } = await service.run('events run second --last --deadline 1'.split(' '))
  const resume = readPrintedCommand(err)
  expect([code, resume.slice(-2)]).toEqual([15, ['--deadline', '1']])
  expect(await service.run([...resume, '--deadline', '1m'])).toMatchObject({ code: 0, out: 'done\n' })
})

test.each<[string, string[], RunOptions, boolean]>([
  ['has --no-stdin if stdin and stderr are no terminals', ['-'], {}, true],
  ['lacks --no-stdin on a terminal, although the task came from a pipe', ['-'], { tty: ['stderr'] }, false],
  ['has --no-stdin on a terminal if it was given', ['go', '--no-stdin'], { tty: ['stderr'] }, true],
])('the resume command of events run %s', async (_, words, options, hasFlag) => {
  const agent = openAgent({ rounds: [[bash('t1')]], policy: always('ask') })
  const { code, err } = await agent.runTask(words, { stdin: 'do it', ...options })
  expect({ code, hasFlag: readPrintedCommand(err).includes('--no-stdin') }).toEqual({ code: 12, hasFlag })
})

test('Q44: the confirm command that events follow prints has the flags that reach the service, but no credential of a header', async () => {
  const service = createSessionService({ history: [bash('t1'), waitsFor('t1')] })
  const header = ['--header', 'X-Trace: a', '--header', 'Cookie: sid=1']
  const flags = ['--workspace-id', 'w1', '--vendor', 'acme', ...header, '--no-beta', '--allow-http']
  const irrelevant = ['--retries', '1', '--timeout', '9']
  const { code, err } = await service.run(['events', 'follow', '--history', ...irrelevant, ...flags])
  expect(code).toBe(12)
  const command = flags
    .join(' ')
    .replace('X-Trace: a', "'$&'")
    .replace('Cookie: sid=1', "'Cookie: [redacted]'")
  expect(err).toContain(`answer with: parley events confirm ${command} -s s1 t1 --allow`)
})

test('Q45: events send prints on a terminal the command that shows the answer', async () => {
  const tty: RunOptions['tty'] = ['stdout', 'stderr']
  const send = async (words: string[], world: RunOptions = { tty }) =>
    (await createSessionService({}).run(['events', 'send', ...words], world)).err
  const command = 'parley events follow --vendor acme -s s1 --history'
  expect(await send(['hi', '--vendor', 'acme'])).toContain(`to see the answer: ${command}\n`)
  expect(await send(['hi'], {})).toBe('')
  for (const words of [['hi', '-q'], ['hi', '--ids'], ['--interrupt']]) expect(await send(words)).toBe('')
})

test('after a signal, the JSON message of events run separates an unanswered --tool command from the resume command', async () => {
  const { options, sendSignal } = createSignalOptions(() => {})
  let printed = ''
  const service = createSessionService({
    posts: [
      { type: 'user.custom_tool_result', act: () => (printed ||= sendSignal()), next: [endTurn] },
      { type: 'user.message', next: [running, custom('c1'), waitsFor('c1')] },
    ],
  })
  await service.run(
    ['events', 'run', 'go', '-s', 's1', '--errors', 'json', '--tool', 'count=echo 1'],
    options,
  )
  expect(JSON.parse(printed).error.message).toContain('.txt; to resume: parley events run -s s1 ')
})

/** Sends a signal at this moment, and returns `retry` of its message and the exit code. */
async function signal(when: 'at work' | 'at the end', words: string[], rounds: Event[][]) {
  const agent = openAgent({ rounds })
  let printed = ''
  const { options, sendSignal } = createSignalOptions(() => {
    if (when === 'at work') printed ||= sendSignal()
  })
  const { code } = await agent.run(['events', 'run', '-s', 's1', '--errors', 'json', ...words], options)
  const { retry, safeToRetry } = JSON.parse(printed || sendSignal()).error
  expect(safeToRetry).toBe(retry === 'later')
  return [retry, code]
}

const audit = ['--audit', 'a.ndjson']
test.each<[string, string[], Event[][], string, number]>([
  ['without --audit does not resume the earlier run', ['go'], [[bash('t1')]], 'never', 12],
  ['with --audit resumes the earlier run until it ends', ['go', ...audit], [[bash('t1')]], 'later', 12],
  ['with --audit resumes the earlier run until its task is done', ['go', ...audit], [], 'later', 0],
])('Y230: after a signal, a rerun of events run %s', async (_, words, rounds, retry, code) => {
  expect((await signal('at work', words, rounds))[0]).toBe(retry)
  // After the end, the signal prints the failure of the run, and a rerun of a finished task sends the task again.
  expect(await signal('at the end', words, rounds)).toEqual([code === 0 ? 'never' : retry, code])
})
