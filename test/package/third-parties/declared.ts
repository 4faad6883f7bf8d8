import { readFileSync } from 'node:fs'
import type { RolldownOutput } from 'rolldown'

export const readText = (path: string) => readFileSync(path, 'utf8')

/** Returns the file of licenses that a build has written, and the name and version of each package in it. */
export function readDeclaration({ output }: RolldownOutput) {
  const licenses = String(
    output.flatMap((each) =>
      each.type === 'asset' && each.fileName === 'THIRD-PARTY-LICENSES.txt' ? [each.source] : [],
    ),
  )
  const headings = [...licenses.matchAll(/^-{80}\n\n(\S+ \S+) \([\w.-]+\)$/gm)]
  return { licenses, titles: headings.map(([, title]) => title as string) }
}
