import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createOpenWindow, createWindow } from '../../src/batch/window.ts'

test('results leave in the order of their lines, and only few wait', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.infiniteStream(fc.nat()),
      fc.nat(80),
      (size, choices, lines) => {
        const window = createWindow(size)
        const open: number[] = []
        const out: string[] = []
        let begun = 0
        let finished = 0
        while (finished < lines) {
          while (begun < lines && window.hasRoom) {
            open.push(window.open())
            begun++
          }
          expect(open.length).toBeGreaterThan(0)
          const [place = 0] = open.splice(choices.next().value % open.length, 1)
          out.push(...window.finish(place, String(place)))
          finished++
          expect(finished - out.length).toBeLessThan(size)
        }
        expect(out).toEqual(Array.from({ length: lines }, (_, at) => String(at)))
      },
    ),
  )
})

test('at an early end what waits is given out, in order and once', () => {
  const window = createWindow(8)
  for (let count = 0; count < 8; count++) window.open()
  expect(window.hasRoom).toBe(false)
  expect([5, 1, 3].flatMap((place) => window.finish(place, `r${place}`))).toEqual([])
  expect(window.takeHeld()).toEqual(['r1', 'r3', 'r5'])
  expect(window.takeHeld()).toEqual([])
})

test('an open window keeps nothing', () => {
  const window = createOpenWindow()
  window.open()
  expect(window.finish(window.open(), 'second')).toEqual(['second'])
  expect([window.hasRoom, window.takeHeld()]).toEqual([true, []])
})
