import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ProcessInfo } from '../context.ts'
import { openCacheFolder } from '../io/cache-folder.ts'
import { replaceFileNow } from '../io/temporary-file.ts'

const most = 20

/**
 * Adds a session to those that TAB offers, the newest first: the shells' scripts read the file. Another process may do the
 * same at once, and its id may be lost then. Throws what the file system throws.
 */
export function keepSession(host: ProcessInfo, session: string): void {
  const path = join(openCacheFolder(host), 'sessions')
  const earlier = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []
  if (earlier[0] === session) return
  // No shell takes such an id for anything but a word.
  const ids = [session, ...earlier.filter((id) => id !== session)].filter((id) => /^[\w-]{1,128}$/.test(id))
  if (ids[0] === session) replaceFileNow(path, `${ids.slice(0, most).join('\n')}\n`, 0o600)
}
