import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { commandEntries } from '../src/cli/command-tree.ts'
import type { CommandEntry } from '../src/commands/command.ts'

const source = join(import.meta.dirname, '../src')
const withSlashes = (path: string) => path.replaceAll('\\', '/')
const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map(withSlashes)
const read = (file: string) => readFileSync(join(source, file), 'utf8')

/** Folders and files of src by level, the lowest first. A folder may import only from lower levels. */
const levels = [
  ['array-set.ts'],
  ['delivery-state.ts'],
  ['errors.ts', 'timers.ts', 'argv'],
  ['secrets.ts', 'deadline.ts'],
  ['wire'],
  ['report-data.ts'],
  ['basic-context.ts'],
  ['io', 'emulator'],
  ['work-tracker.ts'],
  ['context.ts'],
  ['settings'],
  ['http'],
  ['content'],
  ['batch'],
  ['gateway', 'sessions', 'api'],
  ['check.ts'],
  ['commands'],
  ['cli'],
  ['signals.ts'],
  ['std-streams.ts'],
  ['host.ts'],
  ['report-file.ts'],
  ['report.ts'],
  ['main.ts'],
  // Code of the build, which the program does not contain.
  ['build'],
]

const getLevel = (part: string) => levels.findIndex((parts) => parts.includes(part))

const getTopPart = (file: string) => file.split('/')[0] as string

const listImportedNames = (file: string) =>
  [...read(file).matchAll(/(?<!\.)(?:from|import)\s*\(?\s*'([^']+)'/g)].map(([, name = '']) => name)

function listImports(file: string): string[] {
  return listImportedNames(file)
    .filter((name) => name.startsWith('.'))
    .map((name) => withSlashes(relative(source, join(source, dirname(file), name))))
}

test('every file of src belongs to a level of the architecture', () => {
  expect(files.filter((file) => getLevel(getTopPart(file)) < 0)).toEqual([])
})

test('files of src import other folders only from lower levels of the architecture', () => {
  const wrong = files.flatMap((file) =>
    listImports(file)
      .filter((target) => target !== '../package.json')
      .filter((target) => {
        const [from, to] = [getTopPart(file), getTopPart(target)]
        return from !== to && getLevel(to) >= getLevel(from)
      })
      .map((target) => `${file} -> ${target}`),
  )
  expect(wrong).toEqual([])
})

test('the imports of src have no cycles', () => {
  const targets = new Map(files.map((file) => [file, listImports(file)]))
  const done = new Set<string>()
  const circles: string[] = []
  function walk(file: string, path: string[]): void {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (done.has(file) || path.includes(file)) return
    for (const target of targets.get(file) ?? []) walk(target, [...path, file])
    done.add(file)
  }
  for (const file of files) walk(file, [])
  expect(circles).toEqual([])
})

test('each file of src/commands is a command of the command tree, and each command has a file', () => {
  const isFile = (path: string) => files.includes(`commands/${path}.ts`)
  // One file may contain all commands of a group.
  const pathsIn = (level: Record<string, CommandEntry>, before: string): string[] =>
    Object.entries(level).flatMap(([name, { group }]) =>
      group && !isFile(before + name) ? pathsIn(group, `${before}${name}/`) : [`${before}${name}.ts`],
    )
  // Files of commands that are not in commands/.
  const own = ['cli/completion.ts', 'cli/help.ts']
  const isCommand = (file: string) => getTopPart(file) === 'commands' && file !== 'commands/command.ts'
  const commands = files.filter((file) => isCommand(file) || own.includes(file))
  const toFile = (path: string) => (own.includes(`cli/${path}`) ? 'cli/' : 'commands/') + path
  const named = pathsIn(commandEntries, '').map(toFile)
  expect(named.toSorted()).toEqual(commands.toSorted())
})

test('src/wire imports no package but zod', () => {
  const names = files.filter((file) => getTopPart(file) === 'wire').flatMap(listImportedNames)
  expect(new Set(names.filter((name) => !name.startsWith('.')))).toEqual(new Set(['zod/mini']))
})

test('only host.ts, signals.ts and std-streams.ts use `process`, and no file uses `console`', () => {
  const withProcess = files.filter((file) => /\bprocess\.\w/.test(read(file)))
  expect(withProcess.toSorted()).toEqual(['host.ts', 'signals.ts', 'std-streams.ts'])
  expect(files.filter((file) => /\bconsole\.\w/.test(read(file)))).toEqual([])
})

test('only timers.ts, io/lock.ts and the emulator read clocks or random numbers', () => {
  const clocks = /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bMath\.random\b/
  const readers = files.filter((file) => clocks.test(read(file)))
  const others = readers.filter((file) => getTopPart(file) !== 'emulator')
  // Several processes compare the times of a lock, so io/lock.ts uses the clock of the machine.
  expect(others.toSorted()).toEqual(['io/lock.ts', 'timers.ts'])
})
