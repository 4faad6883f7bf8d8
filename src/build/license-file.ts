import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { OutputBundle, Plugin } from 'rolldown'

interface Package {
  title: string
  license: string
  texts: string[]
}

/** `notices` are licenses of projects whose files some packages contain. */
export const createLicenseFilePlugin = (allowedSpdxIds: string[], notices: string[]): Plugin => ({
  name: 'with-third-parties',
  generateBundle(_options, bundle) {
    const packages = findPackages(bundle)
    const faults = packages.flatMap(({ title, license, texts }) => [
      ...(allowedSpdxIds.includes(license) ? [] : [`${title}: the license ${license} is not allowed`]),
      ...(texts.length > 0 ? [] : [`${title} comes without the text of its license`]),
    ])
    if (faults.length > 0) throw new Error(faults.join('\n'))
    const sections = packages.map(
      ({ title, license, texts }) => `${title} (${license})\n\n${texts.join('\n')}`,
    )
    const source = ['The files in this folder hold code of these packages.\n', ...sections, ...notices]
    this.emitFile({
      type: 'asset',
      fileName: 'THIRD-PARTY-LICENSES.txt',
      source: source.join(`\n${'-'.repeat(80)}\n\n`),
    })
  },
})

/** Lists each version of a package once, even if two folders have it. */
function findPackages(bundle: OutputBundle): Package[] {
  const modules = Object.values(bundle)
    .flatMap((output) => (output.type === 'chunk' ? Object.entries(output.modules) : []))
    .filter(([, { renderedLength }]) => renderedLength > 0)
  const packages = modules.flatMap(([id]) => {
    const [folder] =
      /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(toPath(id === runtime ? rolldown : id)) ?? []
    return folder === undefined ? [] : [readPackage(folder)]
  })
  return [...new Map(packages.map((each) => [each.title, each])).values()].toSorted((a, b) =>
    a.title < b.title ? -1 : 1,
  )
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
  return { title: `${name} ${version}`, license, texts }
}
