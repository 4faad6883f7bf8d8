import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { OutputBundle, Plugin } from 'rolldown'

/** Licence facts that no file of the packages contains. */
interface LicenceFacts {
  /** Allowed licences of bundled code, as SPDX ids. */
  allowed: string[]
  /** Text of the MIT licence, with any copyright notice. */
  mit: string
  /**
   * Files of packages that are the work of another project under the MIT licence, with the name and copyright
   * notice of that project.
   */
  inside: Map<string, [name: string, notice: string]>
}

interface Package {
  /** Unique package URL. */
  purl: string
  name: string
  version: string
  license: string
  texts: string[]
  /** Licence texts of other projects' files in the package, by name of the project. */
  inside: Map<string, string>
}

/** Writes the licences (text) and a CycloneDX bill of materials next to a bundle. */
export function declareThirdParties(facts: LicenceFacts): Plugin {
  let root = ''
  return {
    name: 'with-third-parties',
    buildStart({ cwd }) {
      root = cwd
    },
    generateBundle(_options, bundle) {
      const packages = findPackages(bundle, facts)
      const faults = packages.flatMap((each) => findFaults(each, facts))
      if (faults.length > 0) throw new Error(faults.join('\n'))
      const materials = `${JSON.stringify(listMaterials(readPackage(root), packages), null, 2)}\n`
      this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source: printLicences(packages) })
      this.emitFile({ type: 'asset', fileName: 'parley.cdx.json', source: materials })
    },
  }
}

/**
 * Returns the sorted packages whose code is in the bundle. Two folders with the same version of a package
 * count as one.
 */
function findPackages(bundle: OutputBundle, { mit, inside }: LicenceFacts): Package[] {
  const packages = new Map<string, Package>()
  const printMit = (notice: string) => mit.replace(/^Copyright .*/m, () => notice)
  const modules = Object.values(bundle)
    .flatMap((output) => (output.type === 'chunk' ? Object.entries(output.modules) : []))
    .filter(([, { renderedLength }]) => renderedLength > 0)
  for (const [id] of modules) {
    const path = toPath(id === runtime ? rolldown : id)
    const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
    if (folder === undefined) continue
    const read = readPackage(folder)
    const found = packages.get(read.purl) ?? read
    packages.set(read.purl, found)
    const [part, holder] = inside.get(path.replace(/^.*\/node_modules\//, '')) ?? []
    if (part && holder) found.inside.set(part, printMit(holder))
  }
  return [...packages.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1))
}

/** Code that rolldown adds to a bundle. */
const runtime = '\0rolldown/runtime.js'
const rolldown = createRequire(import.meta.url).resolve('rolldown/package.json')

/** Returns the path of a module's id with forward slashes. */
const toPath = (id: string) => id.replace('\0', '').replace(/\?.*$/, '').replaceAll('\\', '/')

function readPackage(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^[\w-]*(licen[sc]e|copying)[\w-]*(\.(md|txt))?$/i.test(entry.name))
    .map((entry) => entry.name)
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8'))
  const purl = `pkg:npm/${name.replace('@', '%40')}@${encodeURIComponent(version)}`
  return { purl, name, version, license, texts, inside: new Map() }
}

const findFaults = ({ name, version, license, texts }: Package, { allowed }: LicenceFacts) => [
  ...(allowed.includes(license) ? [] : [`${name} ${version}: the licence ${license} is not allowed`]),
  ...(texts.length > 0 ? [] : [`${name} ${version} comes without the text of its licence`]),
]

function printLicences(packages: Package[]): string {
  const sections = packages.flatMap(({ name, version, license, texts, inside }) => [
    `${name} ${version} (${license})\n\n${texts.join('\n')}`,
    ...[...inside].map(([part, text]) => `${part} (MIT), in ${name} ${version}\n\n${text}`),
  ])
  const rule = `\n${'-'.repeat(80)}\n\n`
  return ['The files in this folder hold code of these packages.\n', ...sections].join(rule)
}

const listMaterials = (self: Package, others: Package[]) => ({
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: { lifecycles: [{ phase: 'build' }], component: describe('application', self) },
  components: others.map((each) => ({ ...describe('library', each), scope: 'required' })),
})

/** JSON omits fields that are `undefined`. */
function describe(type: string, { purl, name, version, license, inside }: Package) {
  const parts = [...inside.keys()].map((part) => ({ type: 'library', name: part, licenses: licensed('MIT') }))
  return {
    type,
    'bom-ref': purl,
    name,
    version,
    licenses: licensed(license),
    purl,
    components: parts.length > 0 ? parts : undefined,
  }
}

const licensed = (id: string) => [{ license: { id } }]
