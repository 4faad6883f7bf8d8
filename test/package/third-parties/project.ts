import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { createLicenseFilePlugin } from '../../../src/build/license-file.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { readDeclaration } from './declared.ts'

export interface Project {
  /** Packages that `main.js` imports. It prints their default exports, so that the bundle contains them. */
  prints: string[]
  /** Packages by folder. A missing field has its default, such as version 1.0.0 and an allowed license. */
  packages: Record<string, { version?: string; code?: string; license?: string; text?: false }>
}

/** Code that stays in the bundle, because the bundler would inline a constant. */
export const randomExport = 'export default Math.random()'

/** Builds a new project and returns its declared packages. */
export async function buildProject({ prints, packages }: Project) {
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
    write(`${folder}/index.js`, code ?? randomExport)
    if (text ?? true) write(`${folder}/LICENSE`, `The license of ${name} ${version}`)
  }
  const declaration = createLicenseFilePlugin({
    allowedSpdxIds: ['MIT'],
    mit: readFileSync('LICENSE', 'utf8'),
    inside: new Map(),
  })
  const bundle = await rolldown({ cwd, input: './main.js', plugins: [declaration] })
  return readDeclaration(await bundle.generate({ format: 'cjs' }))
}
