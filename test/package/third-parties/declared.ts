import { readFileSync } from 'node:fs'
import type { RolldownOutput } from 'rolldown'

export const readText = (path: string) => readFileSync(path, 'utf8')

/** Returns the file of licences that a build has written, and the name and version of each package in it. */
export function readDeclaration({ output }: RolldownOutput) {
  const licences = String(
    output.flatMap((each) =>
      each.type === 'asset' && each.fileName === 'THIRD-PARTY-LICENSES.txt' ? [each.source] : [],
    ),
  )
  const headings = [...licences.matchAll(/^-{80}\n\n(\S+ \S+) \([\w.-]+\)$/gm)]
  return { licences, titles: headings.map(([, title]) => title as string) }
}
