import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessInfo } from '../context.ts'
import { openCacheFolder } from '../io/cache-folder.ts'
import { writeFileAtomically } from '../io/temporary-file.ts'

const most = 20

/**
 * Adds a session to those that TAB offers, the newest first: the shells' scripts read the file. Another process may do the
 * same at once, and its id may be lost then. If it cannot be kept, completion alone misses it.
 */
export function keepSession(host: ProcessInfo, session: string): void {
  // No shell takes another id for a word alone.
  const isPlain = (id: string) => /^[\w-]{1,128}$/.test(id)
  if (!isPlain(session)) return
  try {
    const path = join(openCacheFolder(host), 'sessions')
    const earlier = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
    if (earlier[0] === session) return
    const ids = [session, ...earlier.filter((id) => id !== session && isPlain(id))]
    writeFileAtomically(path, `${ids.slice(0, most).join('\n')}\n`, { mode: 0o600 })
  } catch {
    // It is worth no words.
  }
}
