import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const files = ['src', 'test'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|cjs)$/.test(file) && file !== 'citations.test.ts')
    .map((file) => `${folder}/${file}`),
)

const comment = /(?<=^|\s)(?:\/\*\*[\s\S]*?\*\/|\/\/ .*(?:\n\s*\/\/ .*)*)/g

/** Returns the comments of a source, each as one line. */
const commentsOf = (text: string) =>
  [...text.matchAll(comment)].map(([found]) => found.replace(/\s*\n\s*(?:\*|\/\/) ?/g, ' '))

const headingsOf = (page: string) => [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading as string)

/** Returns the sections of src/wire/README.md as citations: `gateway, 2.1`. */
function sectionsOf(page: string): string[] {
  let part = ''
  return headingsOf(page).flatMap((heading) => {
    const number = /^\d+(\.\d+)?(?= )/.exec(heading)?.[0]
    if (number) return [`${part}, ${number}`]
    part = heading.toLowerCase()
    return []
  })
}

const sections = sectionsOf(read('src/wire/README.md'))
const parts = [...new Set(sections.map((section) => section.replace(/,.*/, '')))]

/** Finds the sections that a comment cites, such as `(gateway, 2.1)` or `session events, 4.1 and 8`. */
function citedSections(text: string): string[] {
  const cited = new RegExp(`(?:[(;] ?([a-z ]+)|\\b(${parts.join('|')})), (\\d[\\d., and]*)`, 'gi')
  return [...text.matchAll(cited)].flatMap(([, inBrackets, byName, numbers = '']) =>
    [...numbers.matchAll(/[\d.]*\d/g)].map(([number]) => `${inBrackets ?? byName}, ${number}`.toLowerCase()),
  )
}

/** Finds the pages that a comment cites, and the heading after a page, such as `README.md`, Speed. */
const citedPages = (text: string) =>
  [...text.matchAll(/(?<![\w./*-])((?:[\w.-]+\/)*[\w-]+\.md)\b`?(?:, ([A-Z][^,;.:)]*))?/g)].map(
    ([, path = '', heading]) => ({ path, heading: heading?.trim() }),
  )

const isThere = ({ path, heading }: { path: string; heading: string | undefined }) =>
  existsSync(join(root, path)) && (heading === undefined || headingsOf(read(path)).includes(heading))

test('all files that test/mutants/modules.json names exist', () => {
  type Module = { files: string[]; tests: string[] }
  const modules: Record<string, Module> = JSON.parse(read('test/mutants/modules.json'))
  const paths = Object.values(modules)
    .flatMap(({ files, tests }) => [...files, ...tests])
    // For a pattern of all files of a folder, only the folder must exist.
    .map((pattern) => pattern.replace(/\/\*.*/, ''))
    .flatMap((pattern) => {
      const [, before, names = '', after] = /^(.*)\{(.*)\}(.*)$/.exec(pattern) ?? [pattern, '', pattern, '']
      return names.split(',').map((name) => `${before}${name}${after}`)
    })
  expect(paths.length).toBeGreaterThan(30)
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('all pages and sections that comments cite exist', () => {
  const comments = files.flatMap((file) => commentsOf(read(file)).map((text) => ({ file, text })))
  const cited = comments.flatMap(({ file, text }) => [
    ...citedSections(text).map((name) => ({ file, name, isFound: sections.includes(name) })),
    ...citedPages(text).map((page) => ({ file, name: Object.values(page).join(), isFound: isThere(page) })),
  ])
  expect(cited.length).toBeGreaterThan(30)
  expect(cited.filter(({ isFound }) => !isFound).map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})

const faults = read('test/faults/README.md')

/** Returns the ids of the table rows in test/faults/README.md. */
const rowsOf = (page: string) =>
  [...page.matchAll(/^\| ([A-Z]\d{2,3}) \| \S.* \| \S.* \|$/gm)].map(([, id]) => id as string)

const [tested = '', waiting = ''] = faults.split(/^## Waiting$/m)

/** Returns the fault ids in a test file. `T12:00` in a time is not an id. */
const idsIn = (text: string) =>
  [...text.replaceAll(comment, '').matchAll(/(?<![\w+}])[A-Z]\d{2,3}(?!\w)/g)].map(([id]) => id)

test('each id of a fault is in a test title and in one row of test/faults/README.md', () => {
  const ids = files.filter((file) => file.endsWith('.test.ts')).flatMap((file) => idsIn(read(file)))
  expect(rowsOf(tested)).toEqual([...new Set(rowsOf(tested))])
  expect([...new Set(ids)].sort()).toEqual(rowsOf(tested).sort())
  expect(ids.filter((id) => rowsOf(waiting).includes(id))).toEqual([])
})
