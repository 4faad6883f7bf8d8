import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { OutputBundle, Plugin, PluginContext } from 'rolldown'

/** What no file of the packages says. */
interface Facts {
  /** The licences that bundled code may have, as SPDX names them. */
  allowed: string[]
  /** A text of the MIT licence, with any copyright notice. */
  mit: string
  /** The copyright notices of packages under the MIT licence that come without its text. */
  notices: Map<string, string>
  /** Files in packages that are another's work, under the MIT licence: its name and its copyright notice. */
  inside: Map<string, [name: string, notice: string]>
}

interface Package {
  /** Its address as a package URL, which no other has. */
  purl: string
  name: string
  version: string
  license: string
  texts: string[]
  /** The licences' texts of another's work in it, by name. */
  inside: Map<string, string>
  imports: Set<Package>
}

/** Writes beside a bundle whose code is in it: the licences for people, a CycloneDX bill of materials for tools. */
export function declareThirdParties(facts: Facts): Plugin {
  let root = ''
  return {
    name: 'with-third-parties',
    buildStart({ cwd }) {
      root = toPath(realpathSync(cwd))
    },
    generateBundle(_options, bundle) {
      const { self, others, unused } = findPackages(listModules(this, bundle), root, facts)
      const faults = [
        ...others.flatMap((each) => findFaults(each, facts)),
        ...unused.map((each) => `nothing in the bundle needs what is said of ${each}`),
      ]
      if (faults.length > 0) throw new Error(faults.join('\n'))
      const materials = `${JSON.stringify(listMaterials(self, others), null, 2)}\n`
      this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source: printLicences(others) })
      this.emitFile({ type: 'asset', fileName: 'parley.cdx.json', source: materials })
    },
  }
}

interface Module {
  id: string
  imports: string[]
}

/** The modules that something is left of. */
function listModules(build: PluginContext, bundle: OutputBundle): Module[] {
  return Object.values(bundle)
    .flatMap((output) => (output.type === 'chunk' ? Object.entries(output.modules) : []))
    .filter(([, { renderedLength }]) => renderedLength > 0)
    .map(([id]) => {
      const { importedIds = [], dynamicallyImportedIds = [] } = build.getModuleInfo(id) ?? {}
      return { id, imports: [...importedIds, ...dynamicallyImportedIds] }
    })
}

/** What rolldown adds to a bundle. */
const runtime = '\0rolldown/runtime.js'
const rolldown = toPath(dirname(createRequire(import.meta.url).resolve('rolldown/package.json')))

/** The package in `root`, the others that the modules are from, sorted, and which facts are for none of them. */
function findPackages(modules: Module[], root: string, { mit, notices, inside }: Facts) {
  const packages = new Map<string, Package>()
  // Two folders that hold the same version of a package are one.
  const packageIn = (folder: string): Package => {
    const read = readPackage(folder)
    const known = packages.get(read.purl) ?? read
    packages.set(read.purl, known)
    return known
  }
  const printMit = (notice: string) => mit.replace(/^Copyright .*/m, () => notice)
  const self = packageIn(root)
  const found = new Set<Package>()
  const unused = new Set([...notices.keys(), ...inside.keys()])
  for (const { id, imports } of modules) {
    const folder = folderOf(id, root)
    if (!folder) throw new Error(`it is not known whose ${JSON.stringify(id)} is`)
    const importer = packageIn(folder)
    found.add(importer)
    for (const imported of imports.map((each) => folderOf(each, root)))
      if (imported) importer.imports.add(packageIn(imported))
    // No module says that it imports this one.
    if (id === runtime) self.imports.add(importer)
    const notice = notices.get(importer.name)
    if (notice && importer.license === 'MIT' && importer.texts.length === 0) {
      importer.texts.push(printMit(notice))
      unused.delete(importer.name)
    }
    const path = toPath(id).replace(/^.*\/node_modules\//, '')
    const [part, holder] = inside.get(path) ?? []
    if (part && holder) importer.inside.set(part, printMit(holder))
    unused.delete(path)
  }
  found.delete(self)
  return { self, others: [...found].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)), unused: [...unused] }
}

/** The path in a module's id, as it is written everywhere but on Windows. */
function toPath(id: string): string {
  return id.replace('\0', '').replace(/\?.*$/, '').replaceAll('\\', '/')
}

/** The innermost package's folder that a module is in. */
function folderOf(id: string, root: string): string | undefined {
  if (id === runtime) return rolldown
  const path = toPath(id)
  const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
  return folder ?? (path.startsWith(`${root}/`) ? root : undefined)
}

function readPackage(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^[\w-]*(licen[sc]e|copying)[\w-]*(\.(md|txt))?$/i.test(entry.name))
    .map((entry) => entry.name)
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8'))
  const purl = `pkg:npm/${name.replace('@', '%40')}@${encodeURIComponent(version)}`
  return { purl, name, version, license, texts, inside: new Map(), imports: new Set() }
}

const findFaults = ({ name, version, license, texts }: Package, { allowed }: Facts) => [
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

function listMaterials(self: Package, others: Package[]) {
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { lifecycles: [{ phase: 'build' }], component: describe('application', self) },
    components: others.map((each) => ({ ...describe('library', each), scope: 'required' })),
    dependencies: [self, ...others].map(({ purl, imports }) => ({
      ref: purl,
      dependsOn: others.filter((each) => imports.has(each) && each.purl !== purl).map((each) => each.purl),
    })),
  }
}

/** What is undefined here is left out of the JSON. */
function describe(type: string, { purl, name, version, license, inside }: Package) {
  const [, group, rest] = /^(?:(@.+)\/)?(.+)$/.exec(name) ?? []
  const parts = [...inside.keys()].map((part) => ({ type: 'library', name: part, licenses: licensed('MIT') }))
  return {
    type,
    'bom-ref': purl,
    group,
    name: rest,
    version,
    licenses: licensed(license),
    purl,
    components: parts.length > 0 ? parts : undefined,
  }
}

const licensed = (id: string) => [{ license: { id } }]
