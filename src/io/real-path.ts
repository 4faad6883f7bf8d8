import { realpathSync } from 'node:fs'

/** The target of a link that leads somewhere, else the path itself. */
export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
