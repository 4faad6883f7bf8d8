import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'

const world = { env: { PARLEY_SESSION: 'sesn_1' } }

type Event = { id: string; type: string } & Record<string, unknown>

const idle = (id: string, reason: object): Event => ({ id, type: 'session.status_idle', stop_reason: reason })
const usesTool = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: { command: 'ls' },
})

describe('events confirm replies to waiting tool uses', () => {
  const confirm = (argv: string[], more: RunOptions = {}) =>
    run(['events', 'confirm', ...argv], { ...world, ...more })
  const parseEvents = (ended: Awaited<ReturnType<typeof run>>) =>
    JSON.parse(ended.requests.at(-1)?.text ?? '{}').events

  test('events confirm sends its replies to all given ids in one request, each once', async () => {
    const ended = await confirm(['toolu_1', 'toolu_2', 'toolu_1', '--deny', '--message', 'no'])
    expect(ended).toMatchObject({ code: 0, requests: [{}] })
    expect(parseEvents(ended)).toEqual([
      { type: 'user.tool_confirmation', tool_use_id: 'toolu_1', result: 'deny', deny_message: 'no' },
      { type: 'user.tool_confirmation', tool_use_id: 'toolu_2', result: 'deny', deny_message: 'no' },
    ])
  })

  const waiting = idle('i', { type: 'requires_action', event_ids: ['t1', 't2', 't3', 't4'] })
  const list = [
    idle('old', { type: 'requires_action', event_ids: ['t0'] }),
    usesTool('t1'),
    { id: 't2', type: 'agent.mcp_tool_use', name: 'read' },
    { id: 't3', type: 'agent.custom_tool_use' },
    waiting,
  ]

  test.each([
    ['a page', JSON.stringify({ data: list, next_page: null })],
    ['events in lines', list.map((event) => JSON.stringify(event)).join('\n')],
  ])('events confirm replies to the waiting tool uses of %s on stdin', async (_, stdin) => {
    const ended = await confirm(['--allow'], { stdin })
    expect(ended.code).toBe(0)
    expect(parseEvents(ended).map((event: { tool_use_id: string }) => event.tool_use_id)).toEqual([
      't1',
      't2',
      't4',
    ])
    expect(ended.err).toContain('t3 is an agent.custom_tool_use')
  })

  test('events confirm --pending reads the waiting tool uses from the service, and --follow prints the rest of the turn', async () => {
    const exchange = createEmulator({})
    const sent = await run(['events', 'send', 'use two tools', '--follow', '--ids'], { ...world, exchange })
    expect(sent.code).toBe(12)
    expect(sent.out.trim().split('\n')).toHaveLength(2)
    const ended = await confirm(['--pending', '--allow', '--follow'], { exchange })
    expect(ended.code).toBe(0)
    expect(ended.out).toContain('The emulated agent is done.\n')
    expect(await confirm(['--pending', '--allow'], { exchange })).toMatchObject({ code: 2, out: '' })
  })

  describe('prompts of events confirm', () => {
    const waits = (...ids: string[]) => idle('i', { type: 'requires_action', event_ids: ids })
    const three = [usesTool('t1'), usesTool('t2'), usesTool('t3'), waits('t1', 't2', 't3')]
    /** Runs confirm on a terminal at which a person types `typed`. */
    const prompt = async (argv: string[], typed: string, events: object[] = three, more: object = {}) => {
      const list = answering(JSON.stringify({ data: events }))
      const receipt = answering('{"data":[{"id":"c","type":"user.tool_confirmation"}]}')
      const exchange: Exchange = (request) => (request.method === 'POST' ? receipt : list)(request)
      const ended = await confirm(argv, {
        exchange,
        tty: ['stdout', 'stderr'],
        typed,
        env: { ...world.env, NO_COLOR: '1' },
        ...more,
      })
      const posts = ended.requests.filter(({ method }) => method === 'POST')
      const sent = posts.map(({ text }) =>
        JSON.parse(text).events.map((event: Record<string, string>) => [
          event.tool_use_id,
          event.result,
          ...(event.deny_message === undefined ? [] : [event.deny_message]),
        ]),
      )
      return { ...ended, sent }
    }

    test.each([
      [
        'no with a reason',
        'n  not on a Friday \nno\ny\n',
        [
          ['t1', 'deny', 'not on a Friday'],
          ['t2', 'deny'],
          ['t3', 'allow'],
        ],
      ],
      [
        'other input only after a new prompt',
        '\ny es\nyy\ns q\nn\nn\nn\n',
        [
          ['t1', 'deny'],
          ['t2', 'deny'],
          ['t3', 'deny'],
        ],
      ],
    ])('V64: a prompt of events confirm accepts %s', async (_, typed, expected) => {
      const { code, sent, out } = await prompt(['--pending'], typed)
      expect({ code, sent }).toEqual({ code: 0, sent: [expected] })
      expect(out).toMatch(/^ID +TYPE +TIME +TEXT\nc +user\.tool_confirmation/)
    })

    test.each([
      [
        'the person skips one tool use',
        's\ny\nn\n',
        [
          ['t2', 'allow'],
          ['t3', 'deny'],
        ],
        't1',
      ],
      ['the person skips and quits', 's\nskip\nquit\n', undefined, 't1 t2 t3'],
    ])(
      'V65: events confirm exits with 12 if %s, and sends the given replies',
      async (_, typed, expected, left) => {
        const { code, sent, err } = await prompt(['--pending'], typed)
        expect({ code, sent }).toEqual({ code: 12, sent: expected ? [expected] : [] })
        expect(err).toContain('answer with: parley events confirm -s sesn_1 --pending\n')
        expect(err).not.toContain('to see the answer')
        const json = await prompt(['--pending', '--errors', 'json'], typed)
        const last = JSON.parse(/\{"error":.*$/m.exec(json.err)?.[0] ?? '').error
        expect(last).toMatchObject({ exit: 12, pending: left.split(' '), sent: expected ? 'yes' : 'no' })
      },
    )

    test('V65: events confirm prompts again if the reason for a denial is too long', async () => {
      const { sent, err } = await prompt(['t1'], `n ${'x'.repeat(10_001)}\nn ${'x'.repeat(10_000)}\n`)
      expect(sent[0]?.[0]?.[2]).toHaveLength(10_000)
      expect(err).toContain('the reason has more than 10000 characters\n')
    })

    test('V66: events confirm ID prompts with the tool use that the session shows', async () => {
      const { code, sent, err, requests } = await prompt(['t2', 't1', 't2'], 'y\nn\n')
      expect({ code, sent }).toEqual({
        code: 0,
        sent: [
          [
            ['t2', 'allow'],
            ['t1', 'deny'],
          ],
        ],
      })
      expect(err).toContain('  | id: t2\n  | tool: bash\n  | command: ls\n')
      expect(requests.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST'])
    })

    test('V66: events confirm rejects ids that the session does not show or that need no confirmation', async () => {
      const shown: object[] = [
        ...three,
        { id: 'c1', type: 'agent.custom_tool_use', name: 'x', input: {} },
        { id: 'm1', type: 'agent.message', content: 'hi' },
        { id: 'u', type: 'user.tool_confirmation', tool_use_id: 't2', result: 'deny' },
      ]
      const { code, sent, err } = await prompt(['t1', 't9', 'c1', 'm1', 't2'], 'y\ny\ny\n', shown)
      expect({ code, sent }).toEqual({ code: 2, sent: [] })
      expect(err.split('\n')).toEqual([
        'parley: sesn_1: 4 problems',
        '  there is no tool use t9',
        '  c1 is an agent.custom_tool_use: it needs a result, not a confirmation: parley events send -s sesn_1 --custom-tool-result c1=TEXT',
        '  m1 cannot be confirmed: its type is agent.message',
        '  t2 needs no answer: it already has the answer deny',
        '',
      ])
      expect(await prompt(['t9'], 'y\n')).toMatchObject({
        code: 2,
        sent: [],
        err: 'parley: sesn_1: there is no tool use t9\n',
      })
    })

    /** Creates a session that shows the lists in order, then the last one again, and accepts posts. */
    const changing = (...lists: object[][]): Exchange => {
      let count = 0
      const receipt = answering('{"data":[{"id":"c","type":"user.tool_confirmation"}]}')
      return (request) => {
        if (request.method === 'POST') return receipt(request)
        const data = lists[Math.min(count++, lists.length - 1)]
        return answering(JSON.stringify({ data }))(request)
      }
    }
    const two = [usesTool('t1'), usesTool('t2'), waits('t1', 't2')]
    const denied = { type: 'user.tool_confirmation', tool_use_id: 't1', result: 'deny' }
    const other = { ...usesTool('t1'), input: { command: 'rm -rf /' } }

    test.each<[string, object[], string]>([
      ['denied elsewhere', [...two, denied], 't1 is not answered: it already has the answer deny'],
      [
        'no longer shown',
        [usesTool('t2'), waits('t2')],
        't1 is not answered: the session no longer shows it',
      ],
      [
        'interrupted in its thread',
        [
          { ...usesTool('t1'), session_thread_id: 'th' },
          ...two.slice(1),
          { type: 'user.interrupt', session_thread_id: 'th' },
        ],
        't1 is not answered: it was interrupted',
      ],
    ])(
      'events confirm sends no reply to a tool use that was %s during the prompt, but sends the others',
      async (_, latest, said) => {
        const first = _.includes('thread') ? latest.slice(0, 3) : two
        const { code, sent, err } = await prompt(['--pending'], 'y\ny\n', [], {
          exchange: changing(first, latest),
        })
        expect({ code, sent }).toEqual({ code: 0, sent: [[['t2', 'allow']]] })
        expect(err).toContain(`parley: ${said}\n`)
      },
    )

    test('events confirm exits with 0 and sends nothing if the session is interrupted during the prompt', async () => {
      for (const ids of [['--pending'], ['t1', 't2']]) {
        const exchange = changing(two, [...two, { type: 'user.interrupt' }])
        const { code, sent, err } = await prompt(ids, 'y\nn\n', [], { exchange })
        expect({ code, sent }).toEqual({ code: 0, sent: [] })
        for (const id of ['t1', 't2'])
          expect(err).toContain(`parley: ${id} is not answered: ${'it was interrupted'}\n`)
        expect(err).toMatch(/parley: nothing was sent\n$/)
      }
    })

    test.each<[string, object[]]>([
      ['next to the first input', [...two, other]],
      ['instead of the first input', [other, ...two.slice(1)]],
    ])(
      'events confirm leaves a tool use open whose input changed during the prompt (%s)',
      async (_, latest) => {
        const { code, sent, err } = await prompt(['--pending'], 'y\ny\n', [], {
          exchange: changing(two, latest),
        })
        expect({ code, sent }).toEqual({ code: 12, sent: [[['t2', 'allow']]] })
        expect(err).toContain('parley: t1 stays open: its input has changed\n')
        const alone = await prompt(['t1'], 'n\n', [], { exchange: changing(two, latest) })
        expect({ code: alone.code, sent: alone.sent }).toEqual({ code: 12, sent: [] })
      },
    )

    test('events confirm -i FILE prompts with the tool input of the session, not of the file', async () => {
      const cwd = temporaryFolder()
      const shown = [{ ...usesTool('t1'), input: { command: 'git status' } }, waits('t1')]
      writeFileSync(join(cwd, 'record.json'), JSON.stringify(shown))
      const { code, sent, err } = await prompt(['-i', 'record.json'], 'n\n', [other, waits('t1')], { cwd })
      expect({ code, sent }).toEqual({ code: 0, sent: [[['t1', 'deny']]] })
      expect(err).toContain('command: rm -rf /\n')
      expect(err).not.toContain('git status')
      const gone = await prompt(['-i', 'record.json'], 'y\n', [usesTool('t2'), waits('t2')], { cwd })
      expect(gone).toMatchObject({ code: 2, sent: [], err: 'parley: sesn_1: there is no tool use t1\n' })
    })

    test('events confirm ID does not prompt if the session was interrupted before', async () => {
      const { code, sent, err } = await prompt(['t1'], 'y\n', [...two, { type: 'user.interrupt' }])
      expect({ code, sent }).toEqual({ code: 2, sent: [] })
      expect(err).toBe(`parley: sesn_1: t1 needs no answer: ${'it was interrupted'}\n`)
    })

    test('V67: events confirm escapes colours of the service in a prompt, and prints tab-separated lines in a pipe', async () => {
      const use = { ...usesTool('t1'), input: { a: ['x\x1b[31m', 1.5, null] } }
      const { err, out } = await prompt(['t1'], 'y\n', [use, waits('t1')], {
        env: world.env,
        tty: ['stderr'],
      })
      expect(err).toContain('  | {\n  |   "a": [\n  |     "x\\u001b[31m",\n  |     1.5,\n')
      expect(out).toBe('c\tuser.tool_confirmation\t\t\n')
    })
  })

  test.each(['--policy', '--audit'])(
    'events confirm rejects %s and names the command that has the flag',
    async (flag) => {
      const ended = await confirm(['t1', flag, 'x.json'])
      expect(ended).toMatchObject({ code: 2, requests: [] })
      const said = "'parley events run' has this flag, and without a task answers the waiting tool uses"
      expect(ended.err).toContain(`unknown flag '${flag}': ${said}`)
    },
  )

  test.each([
    ['ids and --pending', ['t1', '--pending', '--allow'], undefined, 'exclude each other'],
    [
      'a message with --allow',
      ['t1', '--allow', '--message', 'x'],
      undefined,
      '--message works only with --deny',
    ],
    [
      'confirmations next to --allow',
      ['--allow'],
      '{"type":"user.tool_confirmation","tool_use_id":"t","result":"deny"}',
      'the input already has the decisions: leave out --allow and --deny',
    ],
    ['a value that is not an event', ['--allow'], '"text"', 'events[0]: is not an event'],
  ])('events confirm exits with 2 and sends nothing for %s', async (_, argv, stdin, said) => {
    const ended = await confirm(argv, stdin === undefined ? {} : { stdin })
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
    expect(ended.err).toContain(said)
  })
})
