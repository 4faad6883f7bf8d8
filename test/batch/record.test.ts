import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asTheyCome, formatAnswer, formatFailure, inOrder } from '../../src/batch/record.ts'
import { nothingSpent } from '../../src/content/tokens.ts'

describe('a result line', () => {
  const took = { seconds: 1.5 }
  const rest = { model: 'm', stopReason: 'end_turn', ...took }
  const usage = { inputTokens: 1, totalTokens: 3 }
  const unmetered = { spent: { attempts: 2, answers: 1, unmetered: 1, tokens: 0, usage: {} } }
  const metered = { spent: { attempts: 2, answers: 1, unmetered: 0, tokens: 0, usage } }

  test.each([
    [
      { index: 1, hash: 'h', ...metered },
      { content: { text: 'a\n"b"' }, ...rest },
      '{"index":1,"hash":"h","ok":true,"text":"a\\n\\"b\\"","model":"m","stopReason":"end_turn","usage":{"inputTokens":1,"totalTokens":3},"attempts":2,"seconds":1.5}',
    ],
    [
      { index: 2, id: 'a', hash: 'h#2', ...unmetered },
      { content: { files: ['out/002.png'] }, ...took },
      '{"index":2,"id":"a","hash":"h#2","ok":true,"files":["out/002.png"],"attempts":2,"seconds":1.5}',
    ],
    [
      { index: 3, id: 7, hash: 'h', ...unmetered },
      { content: { json: '{\r\n "n": 1.10,\n "s": "a\\n" }\n' }, model: 'm', ...took },
      '{"index":3,"id":7,"hash":"h","ok":true,"json":{ "n": 1.10, "s": "a\\n" },"model":"m","attempts":2,"seconds":1.5}',
    ],
    [
      { index: 4, hash: 'h', ...metered },
      { content: { response: '{"big":12345678901234567890,\n"x":[1e400]}\n' }, ...rest },
      '{"index":4,"hash":"h","ok":true,"response":{"big":12345678901234567890,"x":[1e400]},"attempts":2,"seconds":1.5}',
    ],
  ])('%o', (subject, answer, line) => expect(formatAnswer(subject, answer)).toBe(line))

  test('of a failure', () => {
    const subject = { index: 1, id: 'a', hash: 'h', spent: nothingSpent() }
    expect(formatFailure(subject, { kind: 'service', exit: 7 })).toBe(
      '{"index":1,"id":"a","hash":"h","ok":false,"error":{"kind":"service","exit":7}}',
    )
    expect(formatFailure({ index: 1, hash: 'h', ...metered }, { kind: 'response', exit: 8 })).toBe(
      '{"index":1,"hash":"h","ok":false,"error":{"kind":"response","exit":8},"usage":{"inputTokens":1,"totalTokens":3}}',
    )
  })

  test('a long response with many line breaks is read in one go', () => {
    const response = `[${'\n1,'.repeat(3_000_000)}1]`
    expect(
      formatAnswer({ index: 1, hash: 'h', ...unmetered }, { content: { response }, ...took }),
    ).toHaveLength(6_000_074)
  })
})

test('results leave in the order of their lines, and only few wait', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.infiniteStream(fc.nat()),
      fc.nat(80),
      (size, choices, lines) => {
        const turns = inOrder(size)
        const open: number[] = []
        const out: string[] = []
        let begun = 0
        let finished = 0
        while (finished < lines) {
          while (begun < lines && turns.haveRoom) {
            open.push(turns.open())
            begun++
          }
          expect(open.length).toBeGreaterThan(0)
          const [place = 0] = open.splice(choices.next().value % open.length, 1)
          out.push(...turns.finish(place, String(place)))
          finished++
          expect(finished - out.length).toBeLessThan(size)
        }
        expect(out).toEqual(Array.from({ length: lines }, (_, at) => String(at)))
      },
    ),
  )
})

test('at an early end what waits is given out, in order and once', () => {
  const turns = inOrder(8)
  for (let count = 0; count < 8; count++) turns.open()
  expect(turns.haveRoom).toBe(false)
  expect([5, 1, 3].flatMap((place) => turns.finish(place, `r${place}`))).toEqual([])
  expect(turns.takeHeld()).toEqual(['r1', 'r3', 'r5'])
  expect(turns.takeHeld()).toEqual([])
})

test('without an order nothing is kept', () => {
  const turns = asTheyCome()
  turns.open()
  expect(turns.finish(turns.open(), 'second')).toEqual(['second'])
  expect([turns.haveRoom, turns.takeHeld()]).toEqual([true, []])
})
