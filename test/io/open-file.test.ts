import { closeSync, fstatSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readPieces } from '../../src/io/open-file.ts'
import { temporaryFolder } from '../harness/run.ts'

function open(text: string): number {
  const file = join(temporaryFolder(), 'file')
  writeFileSync(file, text)
  return openSync(file, 'r')
}

test('a file that is read piece by piece is read whole', async () => {
  const text = 'line\n'.repeat(150_000)
  const file = open(text)
  const pieces: Uint8Array[] = []
  for await (const piece of readPieces(file)) pieces.push(piece)
  expect(pieces.length).toBeGreaterThan(1)
  expect(Buffer.concat(pieces).toString() === text).toBe(true)
  closeSync(file)
})

test('one that is left early stays open, and is closed by whoever opened it', async () => {
  const file = open('text')
  for await (const _ of readPieces(file)) break
  // A stream would close it by now.
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(fstatSync(file).size).toBe(4)
  closeSync(file)
})
