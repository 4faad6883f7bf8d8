import fc from 'fast-check'
import { expect, test } from 'vitest'
import { escapeControls, escapeControlsInJson, toOneLine } from '../../src/io/escape.ts'
import { scaleRuns } from '../harness/property-runs.ts'

const text = fc.string({ unit: 'binary' })
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/

test('parley escapes every control character for a terminal and keeps the order of all other characters', () => {
  const property = fc.property(fc.array(text), (pieces) => {
    const escaped = escapeControls(pieces.join(''))
    expect(escaped).not.toMatch(unsafe)
    expect(escaped).toBe(pieces.map(escapeControls).join(''))
    const kept = [...pieces.join('')].filter((char) => !unsafe.test(char))
    let at = 0
    for (const char of kept) at = escaped.indexOf(char, at) + char.length
    expect(at).toBeLessThanOrEqual(escaped.length)
    if (kept.length === [...pieces.join('')].length) expect(escaped).toBe(pieces.join(''))
  })
  fc.assert(property, scaleRuns(100))
})

test('parley shortens any text to one line of at most the maximum length', () => {
  const property = fc.property(text, fc.integer({ min: 1, max: 60 }), (value, length) => {
    const line = toOneLine(value, length)
    expect(line).not.toMatch(/[\n\t]/)
    expect(line).not.toMatch(unsafe)
    expect([...line].length).toBeLessThanOrEqual(length)
  })
  fc.assert(property, scaleRuns(100))
})

test('escaping of control characters keeps the value of JSON', () => {
  const property = fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
    const json = JSON.stringify(value)
    expect(JSON.parse(escapeControlsInJson(json))).toEqual(JSON.parse(json))
    expect(escapeControlsInJson(json)).not.toMatch(/[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  })
  fc.assert(property, scaleRuns(100))
})
