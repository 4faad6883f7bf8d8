import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Ajv } from 'ajv'
import { rolldown } from 'rolldown'
import { beforeAll, expect, test } from 'vitest'
import config from '../../../rolldown.config.ts'
import { declared, read, readJson, titleOf } from './declared.ts'

const require = createRequire(import.meta.url)
const root = join(import.meta.dirname, '../../..')
let declaration: ReturnType<typeof declared>
/** Folders of the packages that the bundler's comments name, by name and version. */
const folders = new Map<string, string>()

beforeAll(async () => {
  const build = await rolldown({ ...config, cwd: root })
  const made = await build.generate({ ...config.output, minify: false })
  declaration = declared(made)
  const code = made.output.map((each) => (each.type === 'chunk' ? each.code : '')).join('\n')
  for (const [, id = ''] of code.matchAll(/^\/\/ (\S+)$/gm)) {
    const path = id.endsWith('rolldown/runtime.js') ? 'node_modules/rolldown' : id
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    if (!folder) continue
    const { name, version } = readJson(join(root, folder, 'package.json'))
    folders.set(`${name} ${version}`, join(root, folder))
  }
})

test('the declared third-party packages are exactly those whose code is in the bundle', () => {
  const titles = [...folders.keys()].toSorted()
  const names = titles.map((title) => title.split(' ')[0])
  expect(names).toEqual(expect.arrayContaining(['ajv', 'rolldown', 'signal-exit', 'undici']))
  // token-types imports this package for a function that parley does not use.
  expect(names).not.toContain('ieee754')
  expect(declaration.materials.components.map(titleOf).toSorted()).toEqual(titles)
  const headings = [...declaration.licences.matchAll(/^-{80}\n\n(\S+ \S+) \([\w.-]+\)$/gm)]
  expect(headings.map(([, title]) => title).toSorted()).toEqual(titles)
})

test('each declared third-party package has its licence verbatim', () => {
  const sections = declaration.licences.split(`\n${'-'.repeat(80)}\n\n`)
  const files = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license', 'license.md', 'THIRD-PARTY-LICENSE']
  for (const [title, folder] of folders) {
    const { license } = readJson(join(folder, 'package.json'))
    const component = declaration.materials.components.find((each) => titleOf(each) === title)
    expect(component?.licenses).toEqual([{ license: { id: license } }])
    const section = sections.find((each) => each.startsWith(`${title} (${license})\n`))
    const texts = files.map((file) => join(folder, file)).filter(existsSync)
    expect(texts.length).toBeGreaterThan(0)
    for (const text of texts) expect(section).toContain(read(text))
  }
})

test('llhttp, which undici contains as WebAssembly, is a declared third-party package', () => {
  const undici = declaration.materials.components.find(({ name }) => name === 'undici')
  expect(undici?.components).toMatchObject([{ name: 'llhttp', licenses: [{ license: { id: 'MIT' } }] }])
  const notice = /^llhttp \(MIT\), in undici \S+\n\nMIT License\n\nCopyright Fedor Indutny/m
  expect(declaration.licences).toMatch(notice)
})

test('the bill of materials matches the schema of CycloneDX', () => {
  const library = dirname(require.resolve('@cyclonedx/cyclonedx-library/package.json'))
  // The schemas refer to each other by these file names.
  const [bom, ...others] = ['bom-1.6', 'spdx', 'jsf-0.82']
    .map((name) => `${name}.SNAPSHOT.schema.json`)
    .map((file) => ({ ...readJson(join(library, 'res/schema', file)), $id: `http://cyclonedx.test/${file}` }))
  const fits = new Ajv({ strict: false, validateFormats: false, schemas: others }).compile(bom)
  fits(declaration.materials)
  expect(fits.errors ?? []).toEqual([])
  const [first] = declaration.materials.components
  const wrong = { ...first, licenses: [{ license: { id: 'Mine' } }] }
  expect(fits({ ...declaration.materials, components: [wrong] })).toBe(false)
})

test('a second build writes the same declaration of packages byte for byte', () => {
  expect(read(join(root, 'dist/parley.cdx.json'))).toBe(declaration.json)
  expect(read(join(root, 'dist/THIRD-PARTY-LICENSES.txt'))).toBe(declaration.licences)
})
