import { expect, test } from 'vitest'
import { build, type Project, random } from './project.ts'

const withLeaf = (name: string) => ({ code: `import leaf from 'leaf'\nexport default ['${name}', leaf]` })

test('two versions of a package are declared as two, and one version in two folders as one', async () => {
  const { titles, licences } = await build({
    prints: ['@scope/one', 'two', 'three'],
    packages: {
      'node_modules/@scope/one': withLeaf('@scope/one'),
      'node_modules/leaf': {},
      'node_modules/two': withLeaf('two'),
      'node_modules/two/node_modules/leaf': { version: '2.0.0' },
      'node_modules/three': withLeaf('three'),
      'node_modules/three/node_modules/leaf': { version: '2.0.0' },
    },
  })
  const all = ['@scope/one 1.0.0', 'leaf 1.0.0', 'leaf 2.0.0', 'three 1.0.0', 'two 1.0.0']
  expect(titles).toEqual(all)
  expect(licences.match(/The licence of .*/g)).toEqual(all.map((title) => `The licence of ${title}`))
})

test('a package without code in the bundle is not declared, whatever its licence', async () => {
  const { titles, licences } = await build({
    prints: ['kept', 'passed'],
    packages: {
      'node_modules/kept': { code: `import gone from 'gone'\nexport const unused = gone\n${random}` },
      'node_modules/gone': { license: 'GPL-3.0-only' },
      'node_modules/passed': { code: `export { default } from 'leaf'`, text: false },
      'node_modules/leaf': { code: `console.log('here')\n${random}` },
    },
  })
  expect(titles).toEqual(['kept 1.0.0', 'leaf 1.0.0'])
  expect(licences).not.toMatch(/gone|passed/)
})

test('a module with a query, Windows separators or a generated id is declared with its package', async () => {
  const ids = ['asked', 'windows', 'made'].map((name) => [name, `/node_modules/${name}/index.js`])
  const { titles } = await build({
    prints: ['asked', 'windows', 'made'],
    packages: { 'node_modules/asked': {}, 'node_modules/windows': {}, 'node_modules/made': {} },
    plugin: {
      name: 'ids',
      buildStart({ cwd }) {
        for (const id of ids) id[1] = cwd + id[1]
      },
      resolveId(name) {
        const path = new Map(ids as [string, string][]).get(name) ?? ''
        if (name === 'asked') return `${path}?from=/node_modules/other/index.js`
        if (name === 'windows') return path.replaceAll('/', '\\')
        return name === 'made' ? `\0${path}?made` : null
      },
      load: (id) => (id.endsWith('main.js') ? null : random),
    },
  })
  expect(titles).toEqual(['asked 1.0.0', 'made 1.0.0', 'windows 1.0.0'])
})

test('the declaration names the work of others inside of a package', async () => {
  const { licences } = await build({
    prints: ['bare'],
    packages: { 'node_modules/bare': {} },
    facts: { inside: new Map([['bare/index.js', ['core', 'Copyright Core']]]) },
  })
  expect(licences).toMatch(/\ncore \(MIT\), in bare 1.0.0\n\nMIT License\n\nCopyright Core\n\nPermission is/)
})

const text = 'comes without the text of its licence'

test.each<[string, Omit<Project, 'prints'>]>([
  [`odd 1.0.0 ${text}`, { packages: { 'node_modules/odd': { text: false } } }],
  [
    'odd 1.0.0: the licence GPL-3.0-only is not allowed',
    { packages: { 'node_modules/odd': { license: 'GPL-3.0-only' } } },
  ],
])('a build with an undeclarable package fails with the message: %s', async (message, project) => {
  await expect(build({ prints: ['odd'], ...project })).rejects.toThrow(message)
})
