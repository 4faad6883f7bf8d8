import { readFileSync } from 'node:fs'
import type { RolldownOutput } from 'rolldown'

export const read = (path: string) => readFileSync(path, 'utf8')

/** Returns what a build declares about its packages: the file of licences, and name and version of each. */
export function declared({ output }: RolldownOutput) {
  const licences = String(
    output.flatMap((each) =>
      each.type === 'asset' && each.fileName === 'THIRD-PARTY-LICENSES.txt' ? [each.source] : [],
    ),
  )
  const headings = [...licences.matchAll(/^-{80}\n\n(\S+ \S+) \([\w.-]+\)$/gm)]
  return { licences, titles: headings.map(([, title]) => title as string) }
}
