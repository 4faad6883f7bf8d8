import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type RolldownOutput, rolldown } from 'rolldown'
import { beforeAll, expect, test } from 'vitest'
import config from '../../rolldown.config.ts'
import { createLicenseFilePlugin } from '../../src/build/license-file.ts'
import { temporaryFolder } from '../harness/run.ts'

const readText = (path: string) => readFileSync(path, 'utf8')

/** Returns the file of licenses that a build has written, and the name and version of each package in it. */
function readDeclaration({ output }: RolldownOutput) {
  const file = output.find(({ fileName }) => fileName === 'THIRD-PARTY-LICENSES.txt')
  const licenses = file?.type === 'asset' ? String(file.source) : ''
  const headings = [...licenses.matchAll(/^-{80}\n\n(\S+ \S+) \([\w.-]+\)$/gm)]
  return { licenses, titles: headings.map(([, title]) => title as string) }
}

const readJson = (path: string) => JSON.parse(readText(path))
const root = join(import.meta.dirname, '../..')
let declaration: ReturnType<typeof readDeclaration>
/** Folders of the packages that comments of the bundler name, by package name and version. */
const folders = new Map<string, string>()

beforeAll(async () => {
  const build = await rolldown({ ...config, cwd: root })
  const made = await build.generate({ ...config.output, minify: false })
  declaration = readDeclaration(made)
  const code = made.output.map((each) => (each.type === 'chunk' ? each.code : '')).join('\n')
  for (const [, id = ''] of code.matchAll(/^\/\/ (\S+)$/gm)) {
    const path = id.endsWith('rolldown/runtime.js') ? 'node_modules/rolldown' : id
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    if (!folder) continue
    const { name, version } = readJson(join(root, folder, 'package.json'))
    folders.set(`${name} ${version}`, join(root, folder))
  }
})

test('the declared third-party packages are exactly the packages whose code is in the bundle', () => {
  const titles = [...folders.keys()].toSorted()
  const names = titles.map((title) => title.split(' ')[0])
  expect(names).toEqual(expect.arrayContaining(['ajv', 'rolldown', 'signal-exit', 'undici']))
  // token-types imports this package for a function that parley does not use.
  expect(names).not.toContain('ieee754')
  expect(declaration.titles.toSorted()).toEqual(titles)
})

test('each declared third-party package has its license verbatim', () => {
  const sections = declaration.licenses.split(`\n${'-'.repeat(80)}\n\n`)
  const files = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license', 'license.md', 'THIRD-PARTY-LICENSE']
  for (const [title, folder] of folders) {
    const { license } = readJson(join(folder, 'package.json'))
    const section = sections.find((each) => each.startsWith(`${title} (${license})\n`))
    const texts = files.map((file) => join(folder, file)).filter(existsSync)
    expect(texts.length).toBeGreaterThan(0)
    for (const text of texts) expect(section).toContain(readText(text))
  }
})

test('llhttp, which undici contains as WebAssembly, is a declared third-party package', () => {
  const notice = /^llhttp \(MIT\), in undici\n\nMIT License\n\nCopyright Fedor Indutny/m
  expect(declaration.licenses).toMatch(notice)
})

test.each([
  ['odd 1.0.0 comes without the text of its license', 'MIT', 'index.js'],
  ['odd 1.0.0: the license GPL-3.0-only is not allowed', 'GPL-3.0-only', 'LICENSE'],
])('a build fails if a license is missing or not allowed: %s', async (message, license, file) => {
  const folder = 'node_modules/odd'
  const cwd = temporaryFolder({ 'main.js': "import odd from 'odd'; console.log(odd)" })
  mkdirSync(join(cwd, folder), { recursive: true })
  for (const [name, text] of [
    ['package.json', JSON.stringify({ name: 'odd', version: '1.0.0', license, main: 'index.js' })],
    [file, 'The license.'],
    ['index.js', 'export default Math.random()'],
  ] as const)
    writeFileSync(join(cwd, folder, name), text)
  const bundle = await rolldown({ cwd, input: './main.js', plugins: [createLicenseFilePlugin(['MIT'], [])] })
  await expect(bundle.generate({ format: 'cjs' })).rejects.toThrow(message)
})

test('a second build writes the same declaration of packages byte for byte', () => {
  expect(readText(join(root, 'dist/THIRD-PARTY-LICENSES.txt'))).toBe(declaration.licenses)
})
