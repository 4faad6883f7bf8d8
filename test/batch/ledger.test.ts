import { describe, expect, test } from 'vitest'
import { createLedger } from '../../src/batch/ledger.ts'

describe('the ledger', () => {
  test('numbers a hash that comes again', () => {
    const ledger = createLedger()
    const hashes = ['a', 'b', 'a', 'a'].map((hash) => ledger.enter({ hash }).hash)
    expect(hashes).toEqual(['a', 'b', 'a#2', 'a#3'])
  })

  test('knows what is done: the last result of a hash counts', () => {
    const ledger = createLedger()
    ledger.recall({ hash: 'a', isOk: true })
    ledger.recall({ hash: 'a#2', isOk: false })
    ledger.recall({ hash: 'b', isOk: false })
    ledger.recall({ hash: 'b', isOk: true })
    ledger.recall({ hash: 'c', isOk: true })
    ledger.recall({ hash: 'c', isOk: false })
    ledger.recall({ hash: 'x', isOk: true })
    const done = ['a', 'a', 'b', 'c', 'd'].map((hash) => ledger.enter({ hash }).isDone)
    expect(done).toEqual([true, false, true, false, false])
    expect(ledger.unmatched).toBe(1)
  })

  test('refuses an id that is used twice, or that the results have with another request', () => {
    const ledger = createLedger()
    ledger.recall({ id: 'one', hash: 'a', isOk: true })
    ledger.recall({ id: 'two', hash: 'b', isOk: false })
    expect(ledger.enter({ id: 'one', hash: 'a' })).toEqual({ hash: 'a', isDone: true })
    expect(() => ledger.enter({ id: 'two', hash: 'c' })).toThrow('"two" is in the results with another')
    expect(ledger.enter({ id: 3, hash: 'c' })).toEqual({ hash: 'c#2', isDone: false })
    expect(() => ledger.enter({ id: 3, hash: 'd' })).toThrow('its id 3 was used before')
    expect(() => ledger.enter({ id: 'one', hash: 'e' })).toThrow('its id "one" was used before')
  })

  test.each(['__proto__', 'constructor', ''])('takes any id: %j', (id) => {
    const ledger = createLedger()
    ledger.recall({ id, hash: 'a', isOk: true })
    expect(ledger.enter({ id, hash: 'a' }).isDone).toBe(true)
    expect(() => ledger.enter({ id, hash: 'b' })).toThrow('was used before')
  })
})
