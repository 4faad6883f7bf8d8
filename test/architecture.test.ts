import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'

const source = join(import.meta.dirname, '../src')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) =>
  file.endsWith('.ts'),
)
const read = (file: string) => readFileSync(join(source, file), 'utf8')

const rooms = ['settings', 'client', 'terminal', 'emulator']
const floors: Record<string, number> = {
  'errors.ts': 0,
  wire: 1,
  ...Object.fromEntries(rooms.map((room) => [room, 2])),
  batch: 3,
  commands: 3,
  'context.ts': 3,
  'create-context.ts': 4,
  'command-tree.ts': 4,
  'parley-command.ts': 4,
  'pointers.ts': 4,
  'root-command.ts': 4,
  'program.ts': 4,
  'host.ts': 5,
  'main.ts': 5,
}

const roomOf = (file: string) => file.split('/')[0] as string

function importsOf(file: string): string[] {
  const names = [...read(file).matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map(
    ([, name]) => name as string,
  )
  return names
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(source, join(source, dirname(file), name)))
}

test('every file has a floor', () => {
  expect(files.filter((file) => floors[roomOf(file)] === undefined)).toEqual([])
})

test('imports only go down, and rooms on one floor have no doors between them', () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((target) => target !== '../package.json')
      .filter((target) => {
        const [from, to] = [roomOf(file), roomOf(target)]
        const isUp = (floors[to] as number) > (floors[from] as number)
        return isUp || (from !== to && rooms.includes(from) && rooms.includes(to))
      })
      .map((target) => `${file} -> ${target}`),
  )
  expect(wrong).toEqual([])
})

test('the contract needs two small libraries only', () => {
  const names = files
    .filter((file) => roomOf(file) === 'wire')
    .flatMap((file) =>
      [...read(file).matchAll(/(?:from|import)\s*\(?\s*'([^.'][^']*)'/g)].map(([, name]) => name),
    )
  expect(new Set(names)).toEqual(new Set(['zod/mini', 'fastest-levenshtein']))
})

test('process and console appear in the host only', () => {
  const wrong = files.filter((file) => file !== 'host.ts' && /\b(process|console)\.\w/.test(read(file)))
  expect(wrong).toEqual([])
})
