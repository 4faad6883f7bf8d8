import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { declareThirdParties } from '../../../src/build/third-parties.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { declared } from './declared.ts'

export interface Project {
  /** Packages that `main.js` imports and prints. */
  prints: string[]
  /** Packages by folder, each with its differences from version 1.0.0 with an allowed licence. */
  packages: Record<string, { version?: string; code?: string; license?: string; text?: false }>
  facts?: Partial<Parameters<typeof declareThirdParties>[0]>
  plugin?: Plugin
}

/** Code that stays in the bundle. A constant would be inlined. */
export const random = 'export default Math.random()'

/** Builds a new project and returns what is declared about its packages. */
export async function build({ prints, packages, facts, plugin }: Project) {
  const cwd = temporaryFolder()
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(cwd, path)), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
  const imports = prints.map((name, at) => `import a${at} from '${name}'`)
  write('main.js', `${imports.join('\n')}\nconsole.log(${prints.map((_, at) => `a${at}`)})`)
  write('package.json', JSON.stringify({ name: 'own', version: '1.0.0', license: 'MIT' }))
  for (const [folder, { version = '1.0.0', code, license = 'MIT', text }] of Object.entries(packages)) {
    const name = folder.replace(/^.*node_modules\//, '')
    write(`${folder}/package.json`, JSON.stringify({ name, version, license, main: 'index.js' }))
    write(`${folder}/index.js`, code ?? random)
    if (text ?? true) write(`${folder}/LICENSE`, `The licence of ${name} ${version}`)
  }
  const declaration = declareThirdParties({
    allowed: ['MIT'],
    mit: readFileSync('LICENSE', 'utf8'),
    inside: new Map(),
    ...facts,
  })
  const bundle = await rolldown({ cwd, input: './main.js', plugins: [plugin, declaration] })
  return declared(await bundle.generate({ format: 'cjs' }))
}
