import { closeSync, constants, fstatSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import type { KeptSession } from '../emulator/sessions/session.ts'
import type { SessionStore } from '../emulator/sessions/sessions.ts'
import { CliError, fileProblem } from '../errors.ts'
import { openCacheFolder } from '../io/cache-folder.ts'
import { lock } from '../io/lock.ts'
import { openRegular } from '../io/open-file.ts'
import { replaceFileNow } from '../io/temporary-file.ts'
import { isObject } from '../wire/json/parse.ts'

/** How long a session is kept after it was last used, in milliseconds, and how much of all of them, in bytes. */
const [longest, largest] = [60 * 60 * 1000, 2 ** 20]

/** The version of the file's format. */
const version = 2

/** A process that has the lock works for moments only, so the lock is soon free again. */
const waiting = { longestWait: 30_000, silence: 3000, kind: 'file', consequence: 'nothing was sent' } as const

/** The demo's sessions in the user's cache folder. If they cannot be kept there, a note says so once. */
export function openDemoSessions({ host, note, timers, cleanups }: Context): SessionStore {
  let path: string | undefined
  let isTold = false
  /** The file as it was last read or written. */
  let known = ''
  const isFresh = ({ used }: KeptSession) => timers.date() - used < longest
  const find = () => {
    path ??= join(openCacheFolder(host), 'demo-sessions.json')
    return path
  }

  function giveUp(error: unknown): undefined {
    if (error instanceof CliError) throw error
    if (!isTold) note(`the demo's sessions end with this process: ${fileProblem(error)}`)
    isTold = true
  }

  function read(): KeptSession[] {
    try {
      const file = find()
      const mark = markOf(file)
      if (mark === known) return []
      known = mark
      return mark === '' ? [] : readFresh(file)
    } catch (error) {
      giveUp(error)
      return []
    }
  }

  function readFresh(file: string): KeptSession[] {
    try {
      return parse(readOwn(file)).filter(isFresh)
    } catch (error) {
      const why = error instanceof SyntaxError ? 'it is damaged' : fileProblem(error)
      note(`${file}: ${why}; the demo's sessions are begun anew`)
      return []
    }
  }

  function write(sessions: KeptSession[]): void {
    const text = spell(sessions.filter(isFresh))
    if (text === undefined) throw new Error('they are longer than 1 MiB')
    replaceFileNow(find(), text, 0o600)
    known = markOf(find())
  }

  return {
    read,
    async change(change) {
      const held = await Promise.resolve()
        .then(() => lock(find(), waiting))
        .catch(giveUp)
      if (!held) return void change([])
      cleanups.add(held.release)
      try {
        const sessions = change(read())
        if (!held.isHeld()) throw new Error('another parley has taken them over')
        write(sessions)
      } catch (error) {
        giveUp(error)
      } finally {
        cleanups.delete(held.release)
        held.release()
      }
    },
  }
}

/** Changes when the file does; empty if there is none. */
function markOf(path: string): string {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
  return stat ? `${stat.ino} ${stat.mtimeNs} ${stat.size}` : ''
}

function readOwn(path: string): string {
  const file = openRegular(path, path, constants.O_RDONLY)
  try {
    if (fstatSync(file).size > 2 * largest) throw new Error('it is too large')
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

/** Only parley writes the file, as a whole: what bears its version is taken for whole. */
function parse(text: string): KeptSession[] {
  const whole: unknown = JSON.parse(text)
  if (!isObject(whole) || whole.version !== version || !Array.isArray(whole.sessions))
    throw new Error('it holds something else')
  return whole.sessions
}

/** As many as there is room for, those used last; `undefined` if that is none. */
function spell(sessions: KeptSession[]): string | undefined {
  const kept: string[] = []
  let size = 0
  for (const session of sessions.toReversed()) {
    const text = JSON.stringify(session)
    size += Buffer.byteLength(text) + 1
    if (size > largest - 100) break
    kept.unshift(text)
  }
  if (kept.length === 0 && sessions.length > 0) return undefined
  return `{"version":${version},"sessions":[\n${kept.join(',\n')}\n]}\n`
}
