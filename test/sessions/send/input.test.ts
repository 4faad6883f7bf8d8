import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { answering, run, temporaryFolder } from '../../harness/run.ts'

const env = { PARLEY_SESSION: 'sesn_1' }
const given = '{"type":"user.interrupt","x":1.10}'

async function send(argv: string[], world: Parameters<typeof run>[1] = {}) {
  const exchange = answering('{"data":[]}')
  const ended = await run(['events', 'send', ...argv], { env, exchange, ...world })
  const body = ended.requests[0]?.text
  return { ...ended, body, types: body && JSON.parse(body).events.map(({ type }: { type: string }) => type) }
}

describe('stdin beside event flags', () => {
  test.each([
    ['one event', given],
    ['a list', `[${given}]`],
    ['a body', `{"events":[${given}],"more":1.0}`],
    ['one a line', `${given}\n`],
  ])('Q20 holds events, which come first: %s', async (_, stdin) => {
    const { code, body, types } = await send(['--tool-result', 't1=ok', '--system', 's'], { stdin })
    expect({ code, types }).toEqual({
      code: 0,
      types: ['user.interrupt', 'user.tool_result', 'system.message'],
    })
    expect(body).toContain(given)
  })

  test.each([
    ['text', 'the log'],
    ['broken JSON', '{"type":'],
    ['a broken line', `${given}\n{`],
  ])('Q21 that is %s is exit 2, and nothing is sent', async (_, stdin) => {
    const { code, err, requests } = await send(['--message', 'hi'], { stdin })
    expect({ code, requests }).toEqual({ code: 2, requests: [] })
    expect(err).toContain('stdin: ')
  })

  test.each([
    ['empty', ''],
    ['blank', ' \n'],
  ])('Q22 that is %s adds nothing', async (_, stdin) => {
    const { code, types, err } = await send(['--message', 'hi'], { stdin })
    expect({ code, types, err }).toEqual({
      code: 0,
      types: ['user.message'],
      err: expect.not.stringContaining('stdin'),
    })
  })

  test.each([
    [['--interrupt']],
    [['--interrupt-thread', 't', '--interrupt']],
    [['--message', 'hi', '--no-stdin']],
    [['--message', 'hi', '-i', 'events.json']],
  ])('Q23 is left alone with %j', async (argv) => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'events.json'), given)
    const { code, body } = await send(argv, { stdin: '{"type":"user.message","content":[]}', cwd })
    expect(code).toBe(0)
    expect(body).not.toContain('"content":[]')
  })

  test('Q24 is read once: a flag that asks for it takes it', async () => {
    const { code, types } = await send(['--message', '@-'], { stdin: 'the text' })
    expect({ code, types }).toEqual({ code: 0, types: ['user.message'] })
    expect(await send(['--message', '@-', '-i', '-'], { stdin: given })).toMatchObject({
      code: 2,
      requests: [],
    })
  })

  test('Q25 run takes the same', async () => {
    const world = { env, exchange: answering('{"data":[]}'), stdin: given }
    const ended = await run(['events', 'run', '--message', 'hi', '--dry-run'], world)
    expect(JSON.parse(ended.out).body.events).toMatchObject([
      { type: 'user.interrupt' },
      { type: 'user.message' },
    ])
    const wrong = await run(['events', 'run', '--message', 'hi'], { ...world, stdin: 'text' })
    expect(wrong).toMatchObject({ code: 2, requests: [] })
  })
})

describe('stdin beside words', () => {
  test('Q26 that looks like events goes as text, which a note says', async () => {
    for (const stdin of [given, `[${given}]`, `${given}\n${given}`, `{"events":[]}`]) {
      const { code, err, body } = await send(['what is this?'], { stdin })
      expect(code).toBe(0)
      expect(JSON.parse(body ?? '').events).toEqual([
        {
          type: 'user.message',
          content: [
            { type: 'text', text: 'what is this?' },
            { type: 'text', text: stdin },
          ],
        },
      ])
      expect(err).toContain('stdin looks like events; it is sent as text')
    }
    expect((await send(['x'], { stdin: '{"a":1}' })).err).not.toContain('looks like')
  })

  test('Q27 that is empty is said', async () => {
    expect((await send(['hi'], { stdin: '' })).err).toContain('stdin is empty')
    expect((await send(['hi'])).err).not.toContain('stdin is empty')
    expect((await send(['hi', '--no-stdin'], { stdin: '' })).err).not.toContain('stdin is empty')
  })
})
