import { expect, test } from 'vitest'
import { BatchLineRegistry } from '../../src/batch/line-registry.ts'

const digest = '0123456789abcdef'.repeat(2)

test('a batch adds #2, #3 to the hashes of lines that repeat a request', () => {
  const registry = new BatchLineRegistry()
  const hashes = ['a', 'b', 'a', 'a'].map((hash) => registry.addLine({ hash }).hash)
  expect(hashes).toEqual(['a', 'b', 'a#2', 'a#3'])
})

test('the last result with the hash of a batch line decides whether the line is finished', () => {
  const registry = new BatchLineRegistry()
  const results = `a+ a#2- ${digest}#2+ b- b+ c+ c- x+`.split(' ')
  for (const result of results) registry.addResult({ hash: result.slice(0, -1), isOk: result.endsWith('+') })
  const lines = ['a', 'a', digest, digest, 'b', 'c', 'd'].map((hash) => registry.addLine({ hash }))
  const shown = lines.map(({ hash, isDone }) => hash + (isDone ? '+' : '-')).join(' ')
  expect(shown).toBe(`a+ a#2- ${digest}- ${digest}#2+ b+ c- d-`)
  expect(registry.endInput()).toBe(1)
})

test('a batch recognizes the 600 finished lines among 1,200 lines by their hashes', () => {
  const registry = new BatchLineRegistry()
  const hashes = Array.from({ length: 1200 }, (_, number) => `hash ${number}`)
  for (const hash of hashes.slice(600)) registry.addResult({ hash, isOk: true })
  const lines = hashes.map((hash) => registry.addLine({ hash }))
  expect(lines).toEqual(hashes.map((hash, number) => ({ hash, isDone: number >= 600 })))
})

test('a batch distinguishes two hashes for which its table has the same first slot', () => {
  const registry = new BatchLineRegistry()
  const hashes = ['0', '2'].map((digit) => `0000000000${digit}00`.padEnd(32, '0'))
  for (const [number, hash] of hashes.entries()) registry.addResult({ hash, isOk: number === 0 })
  expect(hashes.map((hash) => registry.addLine({ hash }).isDone)).toEqual([true, false])
})

const odd = ['', '0'.repeat(32), 'x'.repeat(32), `x${digest}`]
test.each(odd)('a batch accepts any text as the hash of an earlier result: %j', (hash) => {
  const registry = new BatchLineRegistry()
  registry.addResult({ id: 1, hash, isOk: true })
  expect(registry.addLine({ id: 1, hash })).toEqual({ hash, isDone: true })
})

test('a batch rejects an id that two lines share, or that belongs to another request in the results', () => {
  const registry = new BatchLineRegistry()
  registry.addResult({ id: 'one', hash: 'a', isOk: true })
  registry.addResult({ id: 'two', hash: 'b', isOk: false })
  registry.addResult({ id: 'twelve', hash: 'f#12', isOk: true })
  expect(registry.addLine({ id: 'one', hash: 'a' })).toEqual({ hash: 'a', isDone: true })
  expect(() => registry.addLine({ id: 'two', hash: 'c' })).toThrow('"two" is in the results, but for another')
  expect(registry.addLine({ id: 3, hash: 'c' })).toEqual({ hash: 'c#2', isDone: false })
  expect(() => registry.addLine({ id: 3, hash: 'd' })).toThrow('its id 3 is also the id of an earlier line')
  expect(registry.addLine({ id: 'twelve', hash: 'f' })).toEqual({ hash: 'f', isDone: false })
  expect(() => registry.addLine({ id: 'one', hash: 'e' })).toThrow('its id "one" is also the id')
})

test('the message about the repeated id of a batch line shortens the id', () => {
  const registry = new BatchLineRegistry()
  const add = () => registry.addLine({ id: 'x'.repeat(101), hash: 'a' })
  add()
  expect(add).toThrow(`its id "${'x'.repeat(100)}" is also the id of an earlier line`)
})

test('a batch does not match a result without an id to the id "undefined"', () => {
  const registry = new BatchLineRegistry()
  registry.addResult({ hash: 'a', isOk: true })
  expect(registry.addLine({ id: 'undefined', hash: 'b' })).toEqual({ hash: 'b', isDone: false })
})

test('a batch distinguishes line ids that differ only in a lone surrogate', () => {
  const registry = new BatchLineRegistry()
  const ids = ['\ud800', '\ud801', '\udc00', '\ufffd', '\ud800\ud800', '\ud83d\ude00', '\u{1f601}']
  for (const id of ids) registry.addLine({ id, hash: 'a' })
  for (const id of ids)
    expect(() => registry.addLine({ id, hash: 'a' })).toThrow('is also the id of an earlier line')
})

test.each(['__proto__', 'constructor', ''])('a batch accepts any text as the id of a line: %j', (id) => {
  const registry = new BatchLineRegistry()
  registry.addResult({ id, hash: 'a', isOk: true })
  expect(registry.addLine({ id, hash: 'a' }).isDone).toBe(true)
  expect(() => registry.addLine({ id, hash: 'b' })).toThrow('is also the id of an earlier line')
})
