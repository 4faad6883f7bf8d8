import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { escapeControls, escapeJson, oneLine } from '../../src/io/escape.ts'
import { often } from '../harness/often.ts'

const text = fc.string({ unit: 'binary' })
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/

describe('escapeControls and oneLine', () => {
  test('escapeControls escapes every control character and keeps all others in place', () => {
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
    fc.assert(property, often(100))
  })

  test('oneLine returns one line within the maximum length', () => {
    const property = fc.property(text, fc.integer({ min: 1, max: 60 }), (value, length) => {
      const line = oneLine(value, length)
      expect(line).not.toMatch(/[\n\t]/)
      expect(line).not.toMatch(unsafe)
      expect([...line].length).toBeLessThanOrEqual(length)
    })
    fc.assert(property, often(100))
  })

  test('escapeJson keeps the meaning of JSON', () => {
    const property = fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const json = JSON.stringify(value)
      expect(JSON.parse(escapeJson(json))).toEqual(JSON.parse(json))
      expect(escapeJson(json)).not.toMatch(/[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    })
    fc.assert(property, often(100))
  })
})
