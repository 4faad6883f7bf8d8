import { realpathSync } from 'node:fs'

/**
 * The target of a link that leads somewhere, else the path itself. The system's own words for it: where upper and lower
 * case are one, so are two spellings of a file.
 */
export function realPath(path: string): string {
  try {
    return realpathSync.native(path)
  } catch {
    return path
  }
}
