import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { printMit } from './mit.ts'

/** What no file of the packages says. */
export interface Facts {
  /** The licences that bundled code may have, as SPDX names them. */
  allowed: string[]
  /** The copyright notices of packages under the MIT licence that come without its text. */
  notices: Map<string, string>
  /** Files in packages that are another's work, under the MIT licence: its name and its copyright notice. */
  inside: Map<string, [name: string, notice: string]>
}

export interface Module {
  id: string
  imports: string[]
}

export interface Package {
  /** Its address as a package URL, which no other has. */
  purl: string
  name: string
  version: string
  license: string
  texts: string[]
  /** SHA-512 of what npm unpacked, in hexadecimal, if the lock file has it. */
  hash: string | undefined
  /** The licences' texts of another's work in it, by name. */
  inside: Map<string, string>
  imports: Set<Package>
}

/** What rolldown adds to a bundle. */
const runtime = '\0rolldown/runtime.js'
const rolldown = toPath(dirname(createRequire(import.meta.url).resolve('rolldown/package.json')))

/** The package in `root`, the others that the modules are from, sorted, and which facts are for none of them. */
export function findPackages(modules: Module[], root: string, { notices, inside }: Facts) {
  const reader = createReader(root)
  const self = reader(root)
  const found = new Set<Package>()
  const unused = new Set([...notices.keys(), ...inside.keys()])
  for (const { id, imports } of modules) {
    const folder = folderOf(id, root)
    if (!folder) throw new Error(`it is not known whose ${JSON.stringify(id)} is`)
    const importer = reader(folder)
    found.add(importer)
    for (const imported of imports.map((each) => folderOf(each, root)))
      if (imported) importer.imports.add(reader(imported))
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
export function toPath(id: string): string {
  return id.replace('\0', '').replace(/\?.*$/, '').replaceAll('\\', '/')
}

/** The innermost package's folder that a module is in. */
function folderOf(id: string, root: string): string | undefined {
  if (id === runtime) return rolldown
  const path = toPath(id)
  const folder = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]
  return folder ?? (path.startsWith(`${root}/`) ? root : undefined)
}

/** Two folders that hold the same version of a package are one. */
function createReader(root: string): (folder: string) => Package {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const byFolder = new Map<string, Package>()
  const byPurl = new Map<string, Package>()
  return (folder) => {
    const read = byFolder.get(folder) ?? readPackage(folder, lock[toPath(relative(root, folder))])
    const known = byPurl.get(read.purl) ?? read
    byFolder.set(folder, known)
    byPurl.set(known.purl, known)
    return known
  }
}

function readPackage(folder: string, locked: { version: string; integrity?: string } | undefined): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const texts = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /^[\w-]*(licen[sc]e|copying)[\w-]*(\.(md|txt))?$/i.test(entry.name))
    .map((entry) => entry.name)
    .toSorted()
    .map((file) => readFileSync(join(folder, file), 'utf8'))
  // The version that is unpacked may not be the one that is locked.
  const integrity = locked?.version === version ? locked?.integrity : undefined
  const [, hash] = /sha512-(\S+)/.exec(integrity ?? '') ?? []
  return {
    purl: `pkg:npm/${name.replace('@', '%40')}@${encodeURIComponent(version)}`,
    name,
    version,
    license,
    texts,
    hash: hash && Buffer.from(hash, 'base64').toString('hex'),
    inside: new Map(),
    imports: new Set(),
  }
}
