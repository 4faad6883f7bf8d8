import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import {
  bash,
  createSessionService,
  endTurn,
  running,
  says,
  userSays,
} from '../../harness/session-service.ts'
import { createFailingStdout } from '../../harness/stdout.ts'
import { type AgentScript, createAgentService as createService, type Event } from './agent-service.ts'

const timers = createIdleClock()
const createAgentService = (script: AgentScript) => createService({ ...script, timers })

interface RunScript extends AgentScript {
  policy?: 'allow' | 'deny' | 'ask'
  cwd?: string
  more?: RunOptions
}

/** Runs events run with a policy that decides every tool use in the same way. */
async function runAll(
  words: string[],
  { policy = 'allow', cwd = temporaryFolder(), more, ...script }: RunScript,
) {
  writeFileSync(join(cwd, 'p.json'), JSON.stringify({ rules: [], default: { decision: policy } }))
  writeFileSync(join(cwd, 's.json'), '{"type":"object","required":["verdict"]}')
  const service = createAgentService(script)
  const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', ...words]
  const ended = await run(argv, { cwd, timers, stdinKind: 'none', exchange: service.exchange, ...more })
  const read = (name: string) =>
    existsSync(join(cwd, name)) ? readFileSync(join(cwd, name), 'utf8') : undefined
  const tasks = ended.requests
    .filter(({ method, text }) => method === 'POST' && text.includes('user.message'))
    .map(({ text }) => JSON.parse(text).events[0].content.map((block: { text: string }) => block.text))
  return { ...ended, cwd, service, read, tasks }
}

describe('events run --last prints only the last answer', () => {
  test('Y120: --last prints the last message since the task, across idle events, and no message of a thread', async () => {
    const { code, out, err } = await runAll(['do it', '--last'], {
      history: [userSays('before'), says('old'), endTurn],
      rounds: [
        [says('first'), bash('t1')],
        [says('the answer'), says('of a thread', { session_thread_id: 'th1' })],
      ],
    })
    expect({ code, out, err }).toEqual({ code: 0, out: 'the answer\n', err: '' })
  })

  test('Y121: --last joins the text blocks of a message, and ends it with one newline', async () => {
    const content = [{ type: 'text', text: 'a' }, { type: 'image' }, { type: 'text', text: 'b\n\n' }]
    const { out } = await runAll(['do it', '--last'], { rounds: [[says('x', { content })]] })
    expect(out).toBe('ab\n')
  })

  test('Y122: --last exits with 8 if no message follows the task; without --last the exit code is 0', async () => {
    const script = { history: [userSays('before'), says('old'), endTurn], rounds: [] }
    for (const flags of [['--last'], ['-o', 'a.txt'], ['--schema', 's.json']]) {
      const { code, err, read } = await runAll(['do it', ...flags], script)
      expect({ code, file: read('a.txt') }).toEqual({ code: 8, file: undefined })
      expect(err).toContain('parley: the agent gave no answer\n')
    }
    expect((await runAll(['do it'], script)).code).toBe(0)
    const { code, err } = await runAll(['do it', '--last', '--fail-on-cut'], script)
    expect({ code, err }).toMatchObject({
      code: 2,
      err: expect.stringContaining('a run without an answer exits with 8'),
    })
  })

  test('Y123: --last exits with 8 if the last message has no text, and does not print an earlier one', async () => {
    const rounds = [[says('before'), { type: 'agent.message', content: [{ type: 'image' }] }]]
    const { code, out, err } = await runAll(['do it', '--last'], { rounds })
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toContain('parley: the answer has no text\n')
  })

  test('Y124: --last prints the answer after a denial (14), but not if the run exits with 12, 13 or 15', async () => {
    const rounds = [[says('first'), bash('t1')], [says('done without')]]
    const denied = await runAll(['do it', '--last'], { rounds, policy: 'deny' })
    expect({ code: denied.code, out: denied.out }).toEqual({ code: 14, out: 'done without\n' })
    const open = await runAll(['do it', '--last'], { rounds, policy: 'ask' })
    expect({ code: open.code, out: open.out }).toEqual({ code: 12, out: '' })
    const stuck = await runAll(['do it', '--last'], {
      rounds: [[says('half')]],
      end: { type: 'session.status_idle', stop_reason: { type: 'retries_exhausted' } },
    })
    expect({ code: stuck.code, out: stuck.out }).toEqual({ code: 13, out: '' })
    const ended = await runAll(['do it', '--last'], {
      rounds: [[says('half')]],
      end: { type: 'session.status_terminated' },
    })
    expect({ code: ended.code, out: ended.out }).toEqual({ code: 13, out: '' })
    const late = await runAll(['do it', '--last', '--deadline', '30s'], {
      rounds: [[says('half')]],
      end: { type: 'session.status_running' },
    })
    expect({ code: late.code, out: late.out }).toEqual({ code: 15, out: '' })
  })

  test("Y125: without a task, --last prints the answer to the session's last task", async () => {
    const history = [userSays('one'), says('of one'), endTurn, userSays('two'), says('of two'), endTurn]
    const { code, out, service } = await runAll(['--last'], { history, rounds: [] })
    expect({ code, out, tasks: service.tasks }).toEqual({ code: 0, out: 'of two\n', tasks: 0 })
    const outcome = { type: 'user.define_outcome', description: 'x' }
    const printed = await runAll(['--last'], { history: [...history, outcome, endTurn], rounds: [] })
    expect({ code: printed.code, out: printed.out }).toEqual({ code: 8, out: '' })
  })

  test('Y126: --last exits with 15 and a resume command if an interrupt ended the turn', async () => {
    const history = [userSays('one'), says('half'), { type: 'user.interrupt' }, endTurn]
    for (const words of [['--last'], []]) {
      const { code, out, err, cwd } = await runAll([...words, '--report', 'r.json'], { history, rounds: [] })
      expect({ code, out }).toEqual({ code: 15, out: '' })
      expect(err).toContain('parley: s1 was interrupted, and nothing was sent since\n')
      expect(err).toMatch(/^ {2}parley events run 'Go on' -s s1 --no-stdin --policy p.json/m)
      expect(JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8'))).toMatchObject({
        exit: 15,
        resume: [
          'events',
          'run',
          'Go on',
          '-s',
          's1',
          '--no-stdin',
          '--policy',
          'p.json',
          ...words,
          '--report',
          'r.json',
        ],
      })
    }
    const gone = await runAll(['--last'], {
      history: [...history, userSays('two'), says('of two'), endTurn],
      rounds: [],
    })
    expect({ code: gone.code, out: gone.out }).toEqual({ code: 0, out: 'of two\n' })
  })

  const used: Event = { type: 'span.model_request_end', model_usage: { input_tokens: 1000 } }
  describe.each([
    ['show', true],
    ['omit', false],
  ])('Y126: an interrupt of another client ends the run although streams %s the interrupt', (_, echoes) => {
    const rounds = [[says('half'), used, { type: 'user.interrupt' }, endTurn]]

    test.each([
      ['prints no answer', []],
      ['does not report the end as the turn’s own at a limit', ['--max-total-tokens', '100']],
    ])(
      "events run after another client's interrupt exits with 15 and a resume command, and %s",
      async (_, flags) => {
        const { code, out, err } = await runAll(['do it', '--last', ...flags], { rounds, echoes })
        expect({ code, out }).toEqual({ code: 15, out: '' })
        expect(err).toContain('parley: s1 was interrupted, and nothing was sent since\n')
        expect(err).toMatch(
          /^ {2}parley events run 'Go on' -s s1 --no-stdin --policy p.json --last( --max-total-tokens 100)?$/m,
        )
        expect(err).not.toContain('already finished')
      },
    )

    test('events run does not record an interrupted task as done, and a rerun does not send it again', async () => {
      const cwd = temporaryFolder()
      const service = createAgentService({ rounds, echoes })
      for (const note of ['', 'the run continues the session and does not send the task again\n']) {
        const { code, err } = await runAll(['do it', '--audit', 'a.ndjson'], {
          cwd,
          rounds: [],
          more: { exchange: service.exchange },
        })
        expect({ code, tasks: service.tasks }).toEqual({ code: 15, tasks: 1 })
        expect(err).toContain(note)
      }
      expect(readFileSync(join(cwd, 'a.ndjson'), 'utf8')).not.toContain('"done"')
    })
  })

  describe.each([true, false])('event of another client after the task (streams show it: %s)', (echoes) => {
    const theirs = userSays('something else')

    test("events run --last prints the answer to its own task, not the answer to another client's later message", async () => {
      const { code, out, err } = await runAll(['do it', '--last'], {
        rounds: [[says('ours'), theirs, says('theirs'), endTurn]],
        echoes,
      })
      expect({ code, out }).toEqual({ code: 0, out: 'ours\n' })
      expect(err).toMatch(/another client sent a user.message \(e\d\) after the task/)
    })

    test("--last exits with 8 and names another client's message that came before any answer", async () => {
      const { code, out, err } = await runAll(['do it', '--last'], {
        rounds: [[theirs, says('theirs'), endTurn]],
        echoes,
      })
      expect({ code, out }).toEqual({ code: 8, out: '' })
      expect(err).toMatch(
        /the agent gave no answer: another client sent a user.message \(e\d\) after the task\n/,
      )
    })

    test("--last exits with 15 if the session was interrupted before another client's message", async () => {
      const rounds = [[says('half'), { type: 'user.interrupt' }, theirs, says('theirs'), endTurn]]
      const { code, out, err } = await runAll(['do it', '--last'], { rounds, echoes })
      expect({ code, out }).toEqual({ code: 15, out: '' })
      expect(err).toMatch(/s1 was interrupted: another client sent a user.message \(e\d\) after the task\n/)
      expect(err).not.toContain('nothing was sent since')
    })
  })

  test('Y127: --last on a terminal prints the other events on stderr, one line each', async () => {
    const { out, err } = await runAll(['do it', '--last'], {
      rounds: [[says('a\nb'), says('the answer')]],
      more: { tty: ['stdout', 'stderr'] },
    })
    expect(out).toBe('the answer\n')
    expect(err).toContain('— agent.message a')
  })
})

describe('events run -o writes the answer to a file', () => {
  test('Y128: events run -o writes the whole answer, in addition to the transcript on stdout', async () => {
    const rounds = [[says('first'), says('the answer')]]
    const both = await runAll(['do it', '-o', 'a.txt', '--report', 'r.json'], { rounds })
    expect(both.out).toContain('\nfirst\nthe answer\n')
    expect(both.read('a.txt')).toBe('the answer\n')
    expect(JSON.parse(both.read('r.json') ?? '')).toMatchObject({
      id: 'e4',
      stopReason: 'end_turn',
      session: 's1',
      files: ['a.txt'],
      resume: null,
    })
    const alone = await runAll(['do it', '-o', 'a.txt', '--last'], { rounds })
    expect({ out: alone.out, file: alone.read('a.txt') }).toEqual({ out: '', file: 'the answer\n' })
    const raw = await runAll(['do it', '-o', 'a.txt', '--raw'], { rounds })
    expect(raw.out).toContain('{"id":"e4","processed_at"')
    expect(raw.read('a.txt')).toBe('the answer\n')
  })

  test('Y129: events run that does not finish keeps the old file of -o and saves the text as FILE.part', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'a.txt'), 'old')
    const open = await runAll(['do it', '-o', 'a.txt', '--last'], {
      rounds: [[says('half'), bash('t1')]],
      policy: 'ask',
      cwd,
    })
    expect(open.code).toBe(12)
    expect(open.err).toContain('the received data is saved as a.txt.part')
    expect([open.read('a.txt'), open.read('a.txt.part')]).toEqual(['old', 'half'])
    const late = await runAll(['do it', '-o', 'c.txt', '--deadline', '30s'], {
      rounds: [[says('so far')]],
      end: { type: 'session.status_running' },
      cwd,
    })
    expect([late.code, late.read('c.txt'), late.read('c.txt.part')]).toEqual([15, undefined, 'so far'])
    expect(late.err).toMatch(
      /to resume:\n {2}parley events run -s s1 --no-stdin --policy p\.json --output c\.txt --deadline 30s --after \w+\n/,
    )
    const silent = await runAll(['do it', '-o', 'b.txt'], { rounds: [[bash('t1')]], policy: 'ask', cwd })
    expect(silent.code).toBe(12)
    expect(readdirSync(cwd).filter((name) => /^[ab]/.test(name))).toEqual(['a.txt', 'a.txt.part'])
  })

  test('Y150: events run exits with 11 or 2 before it sends anything if -o cannot be written', async () => {
    const { code, requests } = await runAll(['do it', '-o', 'none/a.txt'], { rounds: [] })
    expect({ code, requests: requests.length }).toEqual({ code: 11, requests: 0 })
    const same = await runAll(['do it', '-o', 'p.json'], { rounds: [] })
    expect({ code: same.code, err: same.err }).toMatchObject({ code: 2 })
    expect(same.err).toContain('--policy and -o are the same file')
  })
})

const fits = '```json\n{"verdict": 1.0}\n```'

describe('events run --schema prints JSON that matches the schema', () => {
  test('Y151: --schema checks only the answer, and prints its JSON as the agent wrote it', async () => {
    const { code, out, tasks, err } = await runAll(['do it', '--schema', 's.json'], {
      rounds: [[says('I begin'), bash('t1')], [says(fits)]],
    })
    expect({ code, out, err }).toEqual({ code: 0, out: '{"verdict": 1.0}\n', err: '' })
    expect(tasks).toEqual([
      [
        'do it',
        'Answer with nothing but JSON that fits this JSON Schema:\n{"type":"object","required":["verdict"]}',
      ],
    ])
  })

  test('Y152: --schema exits with 8 if the answer does not match or is missing, also after a denial', async () => {
    const { code, out, err } = await runAll(['do it', '--schema', 's.json'], {
      rounds: [[says(fits), bash('t1')], [says('{}')]],
      policy: 'deny',
    })
    expect({ code, out }).toEqual({ code: 8, out: '' })
    expect(err).toContain(
      "the answer does not match s.json: $: required: must have required property 'verdict'",
    )
    const savedPath = /; the received data is saved as (\S+\.txt)\n/.exec(err)?.[1] ?? ''
    expect(readFileSync(savedPath, 'utf8')).toBe('{}')
    expect(err).toContain('the answer begins: {}')
    const none = await runAll(['do it', '--schema', 's.json'], { rounds: [] })
    expect({ code: none.code, out: none.out }).toEqual({ code: 8, out: '' })
    expect(none.err).toContain('the agent gave no answer')
    const raw = await runAll(['do it', '--schema', 's.json', '-o', 'a.json', '--raw'], {
      rounds: [[says(fits)]],
    })
    expect([raw.code, raw.read('a.json')]).toEqual([0, '{"verdict": 1.0}\n'])
    expect(raw.out).toContain('"type":"session.status_idle"')
    const file = await runAll(['do it', '--schema', 's.json', '-o', 'a.json'], { rounds: [[says('{}')]] })
    expect([file.code, file.read('a.json'), file.read('a.json.part')]).toEqual([8, undefined, '{}'])
  })

  test('Y154: --schema without a task checks the last answer, and sends nothing', async () => {
    const history = [userSays('one'), says(fits), endTurn]
    const { code, out, service } = await runAll(['--schema', 's.json'], { history, rounds: [] })
    expect({ code, out, tasks: service.tasks }).toEqual({ code: 0, out: '{"verdict": 1.0}\n', tasks: 0 })
    const bad = await runAll(['--schema', 's.json'], {
      history: [userSays('one'), says('x'), endTurn],
      rounds: [],
    })
    expect({ code: bad.code, tasks: bad.service.tasks }).toEqual({ code: 8, tasks: 0 })
  })

  test('Y155: --schema adds a text block to the last message of a body, and keeps the rest unchanged', async () => {
    const stdin =
      '{"events": [{"type":"user.message","content":[{"type":"text","text":"a", "n": 1.0}]}], "x": 2.50}'
    const { requests } = await runAll(['--schema', 's.json'], {
      rounds: [[says(fits)]],
      more: { stdin, stdinKind: 'pipe' },
    })
    const sent = requests.find(({ method }) => method === 'POST')?.text ?? ''
    const block = {
      type: 'text',
      text: `Answer with nothing but JSON that fits this JSON Schema:\n{"type":"object","required":["verdict"]}`,
    }
    expect(sent.replaceAll(' ', '')).toBe(
      stdin.replace('1.0}', `1.0},${JSON.stringify(block)}`).replaceAll(' ', ''),
    )
    const outcome = await runAll(['--outcome', 'o', '--schema', 's.json'], { rounds: [[says(fits)]] })
    expect({ code: outcome.code, err: outcome.err }).toEqual({
      code: 0,
      err: 'parley: the agent does not get the schema: the task has no message to add it to\n',
    })
  })

  test('Y156: events run exits with 2 and sends nothing if the --schema file is not a schema', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'bad.json'), '{"type":5}')
    const { code, requests } = await runAll(['do it', '--schema', 'bad.json'], { rounds: [], cwd })
    expect({ code, requests: requests.length }).toEqual({ code: 2, requests: 0 })
    const retries = await runAll(['do it', '--schema', 's.json', '--schema-retries', '1'], { rounds: [] })
    expect({ code: retries.code, requests: retries.requests.length }).toEqual({ code: 2, requests: 0 })
    expect(retries.err).toContain('run again with a message that names the mismatches')
  })
})

test('events run --last saves the answer if stdout fails', async () => {
  const service = createSessionService({ posts: [{ next: [running, says('the paid answer'), endTurn] }] })
  const world = { stdout: createFailingStdout(0, 'ENOSPC'), env: { TMPDIR: service.cwd } }
  const { code, err } = await service.run(['events', 'run', 'do it', '--last'], world)
  const files = readdirSync(service.cwd).filter((name) => name.startsWith('parley-'))
  const saved = files.map((name) => readFileSync(join(service.cwd, name), 'utf8'))
  expect({ code, saved }, err).toEqual({ code: 11, saved: ['the paid answer'] })
})

test('G30: events run saves the answer if a signal arrives during its check', async () => {
  const [cwd, TMPDIR] = [temporaryFolder(), temporaryFolder()]
  writeFileSync(join(cwd, 'slow.json'), JSON.stringify({ pattern: '^(a+)+$' }))
  const text = JSON.stringify(`${'a'.repeat(40)}!`)
  let clean: (exit: number) => string = () => ''
  let said = ''
  let checks = 0
  let skipped = 0
  const ended = await runAll(['do it', '--schema', 'slow.json'], {
    cwd,
    rounds: [[says(text)]],
    more: {
      env: { TMPDIR },
      onSignal(act) {
        clean = act
      },
      timers: {
        ...realTimers,
        now: () => realTimers.now() + skipped,
        // The first time limit is that of the check of the schema itself.
        wait(milliseconds, signal) {
          const isLimit = milliseconds > 9_000 && milliseconds <= 10_000
          if (!isLimit || ++checks === 1) return realTimers.wait(milliseconds, signal)
          if (checks === 2) said = clean(130)
          skipped += milliseconds
          return realTimers.wait(1, signal)
        },
      },
    },
  })
  const [, path = ''] =
    /^parley: interrupted: the task was accepted; the received data is saved as (\S+); the session continues; /.exec(
      said,
    ) ?? []
  expect(readFileSync(path, 'utf8')).toBe(text)
  expect(readdirSync(TMPDIR)).toContain(basename(path))
  expect(ended.code).toBe(8)
})

test('Y161: a rerun sends the task again after an answer that did not match --schema', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
  writeFileSync(join(cwd, 's.json'), '{"required":["verdict"],"type":"object"}')
  const service = createAgentService({
    rounds: [
      [says('no'), endTurn],
      [says('{"verdict":1}'), endTurn],
    ],
  })
  const argv = ['events', 'run', 'do it', '-s', 's1', '--audit', 'a.ndjson', '--schema', 's.json']
  const again = () => run(argv, { cwd, timers, exchange: service.exchange })
  const first = await again()
  expect({ code: first.code, tasks: service.tasks }).toEqual({ code: 8, tasks: 1 })
  const second = await again()
  expect({ code: second.code, out: second.out }).toEqual({ code: 0, out: '{"verdict":1}\n' })
  expect(service.tasks).toBe(2)
})

test.each([
  [['--last', '--raw'], '--raw and --last exclude each other'],
  [['--last', '--ids'], '--ids and --last exclude each other'],
  [['--raw', '--ids'], '--raw and --ids exclude each other'],
  [['--schema', 's.json', '--raw'], '--schema and --raw both print to stdout: add -o FILE for the answer'],
])('Y157: events run exits with 2 and sends nothing for %j', async (words, why) => {
  const { code, err, requests } = await runAll(['do it', ...words], { rounds: [] })
  expect({ code, requests: requests.length }).toEqual({ code: 2, requests: 0 })
  expect(err).toContain(why)
})

test('Y158: events run exits with 13 and prints category and explanation of a refusal', async () => {
  const more = {}
  const details = { category: 'cyber', explanation: 'not\u001b[31m this' }
  const idle = { type: 'session.status_idle', stop_reason: { type: 'refusal', stop_details: details } }
  const end = 'stop_reason' in more ? { ...idle, ...more, stop_details: details } : idle
  const { code, out, err, cwd } = await runAll(['do it', '--last'], {
    rounds: [[says('half')]],
    end,
  })
  expect({ code, out }).toEqual({ code: 13, out: '' })
  expect(err).toBe('parley: s1 stopped: refusal (cyber)\n  the service says: not^[[31m this\n')
  const { exchange } = createAgentService({ history: [userSays('x'), end], rounds: [] })
  const argv = ['events', 'follow', '-s', 's1', '--errors', 'json', '--report', 'f.json']
  const followed = await run(argv, { exchange, cwd })
  expect(followed.code).toBe(13)
  expect(JSON.parse(readFileSync(join(cwd, 'f.json'), 'utf8')).stopReason).toBe('refusal')
  expect(JSON.parse(followed.err).error).toMatchObject({
    kind: 'stuck',
    message: 's1 stopped: refusal (cyber): not^[[31m this',
  })
})
