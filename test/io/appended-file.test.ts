import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { AppendedFile } from '../../src/io/appended-file.ts'
import { temporaryFolder } from '../harness/run.ts'

function open(text: string): AppendedFile {
  const path = join(temporaryFolder(), 'file')
  writeFileSync(path, text)
  return new AppendedFile({ path, name: 'file' })
}

test('AppendedFile reads a whole file in chunks', async () => {
  const text = 'line\n'.repeat(150_000)
  const file = open(text)
  const pieces: Uint8Array[] = []
  for await (const piece of file.read()) pieces.push(piece)
  expect(pieces.length).toBeGreaterThan(1)
  expect(Buffer.concat(pieces).toString() === text).toBe(true)
  file.close()
})

test('AppendedFile stays open if reading stops early, until its owner closes it', async () => {
  const file = open('text')
  for await (const _ of file.read()) break
  // A stream would have closed the file after this time.
  await new Promise((resolve) => setTimeout(resolve, 50))
  file.append(', and more')
  expect(file.size).toBe(14)
  file.close()
})
