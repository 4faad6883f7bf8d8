import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { OutputBundle, Plugin } from 'rolldown'

interface LicenseFacts {
  allowedSpdxIds: string[]
  mit: string
  /**
   * Files of another project that a package contains under the MIT license, with the name and copyright
   * notice of that project.
   */
  inside: Map<string, [name: string, notice: string]>
}

interface Package {
  title: string
  license: string
  texts: string[]
  /** License texts of other projects' files in the package, by name of the project. */
  inside: Map<string, string>
}

export function createLicenseFilePlugin(facts: LicenseFacts): Plugin {
  return {
    name: 'with-third-parties',
    generateBundle(_options, bundle) {
      const packages = findPackages(bundle, facts)
      const faults = packages.flatMap((each) => findFaults(each, facts))
      if (faults.length > 0) throw new Error(faults.join('\n'))
      this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-LICENSES.txt', source: printLicenses(packages) })
    },
  }
}

/** Lists each version of a package once, even if two folders have it. */
function findPackages(bundle: OutputBundle, { mit, inside }: LicenseFacts): Package[] {
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
    const found = packages.get(read.title) ?? read
    packages.set(read.title, found)
    const [project, holder] = inside.get(path.replace(/^.*\/node_modules\//, '')) ?? []
    if (project && holder) found.inside.set(project, printMit(holder))
  }
  return [...packages.values()].toSorted((a, b) => (a.title < b.title ? -1 : 1))
}

const runtime = '\0rolldown/runtime.js'
const rolldown = createRequire(import.meta.url).resolve('rolldown/package.json')

const toPath = (id: string) => id.replace('\0', '').replace(/\?.*$/, '').replaceAll('\\', '/')

function readPackage(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^[\w-]*(licen[sc]e|copying)[\w-]*(\.(md|txt))?$/i.test(entry.name))
    .map((entry) => entry.name)
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8'))
  return { title: `${name} ${version}`, license, texts, inside: new Map() }
}

const findFaults = ({ title, license, texts }: Package, { allowedSpdxIds }: LicenseFacts) => [
  ...(allowedSpdxIds.includes(license) ? [] : [`${title}: the license ${license} is not allowed`]),
  ...(texts.length > 0 ? [] : [`${title} comes without the text of its license`]),
]

function printLicenses(packages: Package[]): string {
  const sections = packages.flatMap(({ title, license, texts, inside }) => [
    `${title} (${license})\n\n${texts.join('\n')}`,
    ...[...inside].map(([project, text]) => `${project} (MIT), in ${title}\n\n${text}`),
  ])
  const rule = `\n${'-'.repeat(80)}\n\n`
  return ['The files in this folder hold code of these packages.\n', ...sections].join(rule)
}
