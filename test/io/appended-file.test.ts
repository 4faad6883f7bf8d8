import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { AppendedFile } from '../../src/io/appended-file.ts'
import { temporaryFolder } from '../harness/run.ts'

function open(text: string): AppendedFile {
  const path = join(temporaryFolder(), 'file')
  writeFileSync(path, text)
  return new AppendedFile(path, 'file')
}

test('a file that parley appends to is read in chunks', async () => {
  const text = 'line\n'.repeat(150_000)
  const file = open(text)
  const pieces: Uint8Array[] = []
  for await (const piece of file.read()) pieces.push(piece)
  expect(pieces.length).toBeGreaterThan(1)
  expect(Buffer.concat(pieces).toString() === text).toBe(true)
  file.close()
})

test('parley can append to a file after it has read only the start of the file', async () => {
  const file = open('text')
  for await (const _ of file.read()) break
  // A Node stream would have closed the file by this time.
  await new Promise((resolve) => setTimeout(resolve, 50))
  file.append(', and more')
  expect(file.size).toBe(14)
  file.close()
})

test('parley keeps an incomplete last line if another program has appended to the file', async () => {
  const path = join(temporaryFolder(), 'file')
  writeFileSync(path, 'one\ntw')
  const file = new AppendedFile(path, 'file')
  for await (const _ of file.read());
  writeFileSync(path, 'o\n', { flag: 'a' })
  file.endLastLine(4)
  file.close()
  expect(readFileSync(path, 'utf8')).toBe('one\ntwo\n\n')
})
