import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCacheFolder } from '../io/cache-folder.ts'
import { writeFileAtomically } from '../io/file-output.ts'
import type { ProcessInfo } from '../io/paths.ts'

const maxSessions = 20

/**
 * Adds the session to the file that the scripts of TAB completion read. Takes no lock, because if two
 * processes write at once, TAB completion only lacks one session.
 */
export function addRecentSession(host: ProcessInfo, session: string): void {
  // TAB completion does not quote ids, so an id with other characters is not recorded.
  const isPlain = (id: string) => /^[\w-]{1,128}$/.test(id)
  if (!isPlain(session)) return
  try {
    const path = join(openCacheFolder(host), 'sessions')
    const earlier = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
    if (earlier[0] === session) return
    const ids = [session, ...earlier.filter((id) => id !== session && isPlain(id))]
    writeFileAtomically(path, `${ids.slice(0, maxSessions).join('\n')}\n`, { mode: 0o600 })
  } catch {
    // Without the file, only TAB completion lacks the session, so the failure is not reported.
  }
}
