import { describe, expect, test } from 'vitest'
import { LineLedger } from '../../src/batch/ledger.ts'

const digest = '0123456789abcdef'.repeat(2)

describe('hashes and ids of batch lines', () => {
  test('a batch numbers lines with the same hash', () => {
    const ledger = new LineLedger()
    const hashes = ['a', 'b', 'a', 'a'].map((hash) => ledger.addLine({ hash }).hash)
    expect(hashes).toEqual(['a', 'b', 'a#2', 'a#3'])
  })

  test('the last result of a hash decides whether its batch line is finished', () => {
    const ledger = new LineLedger()
    const results: [hash: string, isOk: boolean][] = [
      ['a', true],
      ['a#2', false],
      [`${digest}#2`, true],
      ['b', false],
      ['b', true],
      ['c', true],
      ['c', false],
      ['x', true],
    ]
    for (const [hash, isOk] of results) ledger.addResult({ hash, isOk })
    const lines = ['a', 'a', digest, digest, 'b', 'c', 'd'].map((hash) => ledger.addLine({ hash }))
    expect(lines.map(({ hash, isDone }) => [hash, isDone])).toEqual([
      ['a', true],
      ['a#2', false],
      [digest, false],
      [`${digest}#2`, true],
      ['b', true],
      ['c', false],
      ['d', false],
    ])
    expect(ledger.countOtherRequests()).toBe(1)
  })

  test('a batch finds the results of many lines', () => {
    const ledger = new LineLedger()
    const hashes = Array.from({ length: 1200 }, (_, number) => `hash ${number}`)
    for (const hash of hashes.slice(600)) ledger.addResult({ hash, isOk: true })
    const lines = hashes.map((hash) => ledger.addLine({ hash }))
    expect(lines).toEqual(hashes.map((hash, number) => ({ hash, isDone: number >= 600 })))
  })

  test.each(['', '0'.repeat(32), 'x'.repeat(32), `x${digest}`])(
    'a batch accepts any hash in the results: %j',
    (hash) => {
      const ledger = new LineLedger()
      ledger.addResult({ id: 1, hash, isOk: true })
      expect(ledger.addLine({ id: 1, hash })).toEqual({ hash, isDone: true })
    },
  )

  test('a batch rejects an id that is used twice, or that the results have with another request', () => {
    const ledger = new LineLedger()
    ledger.addResult({ id: 'one', hash: 'a', isOk: true })
    ledger.addResult({ id: 'two', hash: 'b', isOk: false })
    ledger.addResult({ id: 'twelve', hash: 'f#12', isOk: true })
    expect(ledger.addLine({ id: 'one', hash: 'a' })).toEqual({ hash: 'a', isDone: true })
    expect(() => ledger.addLine({ id: 'two', hash: 'c' })).toThrow('"two" is in the results, but for another')
    expect(ledger.addLine({ id: 3, hash: 'c' })).toEqual({ hash: 'c#2', isDone: false })
    expect(() => ledger.addLine({ id: 3, hash: 'd' })).toThrow('its id 3 is also the id of an earlier line')
    expect(ledger.addLine({ id: 'twelve', hash: 'f' })).toEqual({ hash: 'f', isDone: false })
    expect(() => ledger.addLine({ id: 'one', hash: 'e' })).toThrow(
      'its id "one" is also the id of an earlier line',
    )
  })

  test('the message about a duplicate id of a batch shortens a long id', () => {
    const ledger = new LineLedger()
    const id = 'x'.repeat(101)
    ledger.addLine({ id, hash: 'a' })
    expect(() => ledger.addLine({ id, hash: 'a' })).toThrow(`its id "${'x'.repeat(100)}" is also`)
  })

  test('a batch does not match a result without an id to the id "undefined"', () => {
    const ledger = new LineLedger()
    ledger.addResult({ hash: 'a', isOk: true })
    expect(ledger.addLine({ id: 'undefined', hash: 'b' })).toEqual({ hash: 'b', isDone: false })
  })

  test('a batch distinguishes ids that differ only in a lone surrogate', () => {
    const ledger = new LineLedger()
    const ids = ['\ud800', '\ud801', '\udc00', '\ufffd', '\ud800\ud800', '\ud83d\ude00', '\u{1f601}']
    for (const id of ids) ledger.addLine({ id, hash: 'a' })
    for (const id of ids)
      expect(() => ledger.addLine({ id, hash: 'a' })).toThrow('is also the id of an earlier line')
  })

  test.each(['__proto__', 'constructor', ''])('a batch accepts any id: %j', (id) => {
    const ledger = new LineLedger()
    ledger.addResult({ id, hash: 'a', isOk: true })
    expect(ledger.addLine({ id, hash: 'a' }).isDone).toBe(true)
    expect(() => ledger.addLine({ id, hash: 'b' })).toThrow('is also the id of an earlier line')
  })
})
