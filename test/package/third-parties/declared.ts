import { readFileSync } from 'node:fs'
import type { RolldownOutput } from 'rolldown'

export interface Component {
  name: string
  version: string
  purl: string
  licenses: { license: { id: string } }[]
  components?: Component[]
}

interface Materials {
  components: Component[]
}

export const read = (path: string) => readFileSync(path, 'utf8')

export const readJson = (path: string) => JSON.parse(read(path))

/** Returns what a build declares about its packages. */
export function declared({ output }: RolldownOutput) {
  const asset = (name: string) =>
    String(output.flatMap((each) => (each.type === 'asset' && each.fileName === name ? [each.source] : [])))
  const [licences, json] = [asset('THIRD-PARTY-LICENSES.txt'), asset('parley.cdx.json')]
  return { licences, json, materials: JSON.parse(json) as Materials }
}

export const titleOf = ({ name, version }: Component) => `${name} ${version}`
