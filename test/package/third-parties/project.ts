import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { declareThirdParties } from '../../../src/build/third-parties.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { declared } from './declared.ts'

export interface Project {
  /** What `main.js` imports and prints. */
  prints: string[]
  /** By their folders, what makes them differ from version 1.0.0 of a package whose licence is allowed. */
  packages: Record<string, { version?: string; code?: string; license?: string; text?: false }>
  facts?: Partial<Parameters<typeof declareThirdParties>[0]>
  plugin?: Plugin
}

/** Code: of a module that exports a constant nothing would be left but the constant. */
export const random = 'export default Math.random()'

/** Builds a project that is written for it, and reads what is said of the packages in it. */
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
    notices: new Map(),
    inside: new Map(),
    ...facts,
  })
  const bundle = await rolldown({ cwd, input: './main.js', plugins: [plugin, declaration] })
  return declared(await bundle.generate({ format: 'cjs' }))
}
