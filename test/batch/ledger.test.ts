import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DigestMap } from '../../src/batch/digest-map.ts'
import { Ledger } from '../../src/batch/ledger.ts'

describe('DigestMap', () => {
  test('DigestMap behaves like a map', () => {
    const key = fc.oneof(fc.string(), fc.nat(200).map(String), fc.constant('__proto__'))
    const entries = fc.array(fc.tuple(key, fc.integer({ min: 1, max: 2 ** 32 - 1 })), { maxLength: 400 })
    fc.assert(
      fc.property(entries, (given) => {
        const map = new DigestMap()
        for (const [name, value] of given) map.update(name, () => value)
        const expected = new Map(given)
        for (const [name, value] of expected) expect(map.get(name)).toBe(value)
        expect(map.get('never given')).toBe(expected.get('never given') ?? 0)
      }),
    )
  })

  test('DigestMap needs at most 32 bytes per entry', () => {
    const map = new DigestMap()
    let maxBytes = 0
    for (let count = 1; count <= 100_000; count++) {
      map.update(`line ${count}`, (none) => none + count)
      if (count >= 5000 && count % 500 === 0) maxBytes = Math.max(maxBytes, map.bytes / count)
    }
    expect(maxBytes).toBeLessThanOrEqual(32)
    expect(map.get('line 77777')).toBe(77_777)
  })
})

describe('Ledger', () => {
  test('Ledger numbers the duplicates of a hash', () => {
    const ledger = new Ledger()
    const hashes = ['a', 'b', 'a', 'a'].map((hash) => ledger.addLine({ hash }).hash)
    expect(hashes).toEqual(['a', 'b', 'a#2', 'a#3'])
  })

  test('in a Ledger, the last result of a hash decides if its line is finished', () => {
    const ledger = new Ledger()
    ledger.addResult({ hash: 'a', isOk: true })
    ledger.addResult({ hash: 'a#2', isOk: false })
    ledger.addResult({ hash: 'b', isOk: false })
    ledger.addResult({ hash: 'b', isOk: true })
    ledger.addResult({ hash: 'c', isOk: true })
    ledger.addResult({ hash: 'c', isOk: false })
    ledger.addResult({ hash: 'x', isOk: true })
    const done = ['a', 'a', 'b', 'c', 'd'].map((hash) => ledger.addLine({ hash }).isDone)
    expect(done).toEqual([true, false, true, false, false])
  })

  test('Ledger rejects an id that is used twice, or that the results have with another request', () => {
    const ledger = new Ledger()
    ledger.addResult({ id: 'one', hash: 'a', isOk: true })
    ledger.addResult({ id: 'two', hash: 'b', isOk: false })
    expect(ledger.addLine({ id: 'one', hash: 'a' })).toEqual({
      hash: 'a',
      isDone: true,
      isGone: false,
    })
    expect(() => ledger.addLine({ id: 'two', hash: 'c' })).toThrow('"two" is in the results with another')
    expect(ledger.addLine({ id: 3, hash: 'c' })).toEqual({
      hash: 'c#2',
      isDone: false,
      isGone: false,
    })
    expect(() => ledger.addLine({ id: 3, hash: 'd' })).toThrow('its id 3 was used before')
    expect(() => ledger.addLine({ id: 'one', hash: 'e' })).toThrow('its id "one" was used before')
  })

  test('Ledger shortens a long id in its message', () => {
    const ledger = new Ledger()
    const id = 'x'.repeat(101)
    ledger.addLine({ id, hash: 'a' })
    expect(() => ledger.addLine({ id, hash: 'a' })).toThrow(`its id "${'x'.repeat(100)}" was used`)
  })

  test('Ledger does not match a result without an id to the id "undefined"', () => {
    const ledger = new Ledger()
    ledger.addResult({ hash: 'a', isOk: true })
    expect(ledger.addLine({ id: 'undefined', hash: 'b' })).toEqual({
      hash: 'b',
      isDone: false,
      isGone: false,
    })
  })

  test('Ledger distinguishes ids that differ only in a lone surrogate', () => {
    const ledger = new Ledger()
    const ids = ['\ud800', '\ud801', '\udc00', '\ufffd', '\ud800\ud800', '\ud83d\ude00', '\u{1f601}']
    for (const id of ids) ledger.addLine({ id, hash: 'a' })
    for (const id of ids) expect(() => ledger.addLine({ id, hash: 'a' })).toThrow('was used before')
  })

  test.each(['__proto__', 'constructor', ''])('Ledger accepts any id: %j', (id) => {
    const ledger = new Ledger()
    ledger.addResult({ id, hash: 'a', isOk: true })
    expect(ledger.addLine({ id, hash: 'a' }).isDone).toBe(true)
    expect(() => ledger.addLine({ id, hash: 'b' })).toThrow('was used before')
  })
})
