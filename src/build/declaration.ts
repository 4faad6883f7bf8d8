import { realpathSync } from 'node:fs'
import type { OutputBundle, Plugin, PluginContext } from 'rolldown'
import { type Facts, findPackages, type Module, type Package, toPath } from './packages.ts'

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
function describe(type: string, { purl, name, version, license, hash, inside }: Package) {
  const [, group, rest] = /^(?:(@.+)\/)?(.+)$/.exec(name) ?? []
  const parts = [...inside.keys()].map((part) => ({ type: 'library', name: part, licenses: licensed('MIT') }))
  return {
    type,
    'bom-ref': purl,
    group,
    name: rest,
    version,
    hashes: hash && [{ alg: 'SHA-512', content: hash }],
    licenses: licensed(license),
    purl,
    components: parts.length > 0 ? parts : undefined,
  }
}

const licensed = (id: string) => [{ license: { id } }]
