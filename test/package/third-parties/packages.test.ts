import { expect, test } from 'vitest'
import { buildProject, type Project, randomExport } from './project.ts'

const withLeaf = (name: string) => ({ code: `import leaf from 'leaf'\nexport default ['${name}', leaf]` })

test('the license file lists each version of a package once, even if two folders have the same version', async () => {
  const { titles, licenses } = await buildProject({
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
  expect(licenses.match(/The license of .*/g)).toEqual(all.map((title) => `The license of ${title}`))
})

test('the license file omits a package without code in the bundle, whatever its license', async () => {
  const { titles, licenses } = await buildProject({
    prints: ['kept', 'passed'],
    packages: {
      'node_modules/kept': { code: `import gone from 'gone'\nexport const unused = gone\n${randomExport}` },
      'node_modules/gone': { license: 'GPL-3.0-only' },
      'node_modules/passed': { code: `export { default } from 'leaf'`, text: false },
      'node_modules/leaf': { code: `console.log('here')\n${randomExport}` },
    },
  })
  expect(titles).toEqual(['kept 1.0.0', 'leaf 1.0.0'])
  expect(licenses).not.toMatch(/gone|passed/)
})

const text = 'comes without the text of its license'

test.each<[string, Omit<Project, 'prints'>]>([
  [`odd 1.0.0 ${text}`, { packages: { 'node_modules/odd': { text: false } } }],
  [
    'odd 1.0.0: the license GPL-3.0-only is not allowed',
    { packages: { 'node_modules/odd': { license: 'GPL-3.0-only' } } },
  ],
])('a build fails if the license of a package is missing or not allowed: %s', async (message, project) => {
  await expect(buildProject({ prints: ['odd'], ...project })).rejects.toThrow(message)
})
