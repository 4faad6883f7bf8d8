import { closeSync, constants, fstatSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import { readKeptSessions, type SessionStore } from '../emulator/sessions/kept-sessions.ts'
import type { KeptSession } from '../emulator/sessions/session.ts'
import { CliError, fileProblem } from '../errors.ts'
import { openCacheFolder } from '../io/cache-folder.ts'
import { type Lock, lock } from '../io/lock.ts'
import { openRegular } from '../io/open-file.ts'
import { replaceFileNow } from '../io/temporary-file.ts'

/** How long a session is kept after it was last used, in milliseconds, and how much of all of them, in bytes. */
const [longest, largest] = [60 * 60 * 1000, 2 ** 20]

/** The version of the file's format. */
const version = 1

/** A process that has the lock works for moments only, so the lock is soon free again. */
const waiting = { longestWait: 30_000, silence: 3000, kind: 'file', consequence: 'nothing was sent' } as const

/**
 * The demo's sessions in the user's cache folder. If they cannot be kept there, that is said once, and they end with the
 * process.
 */
export function openDemoSessions({ host, note, timers, cleanups }: Context): SessionStore {
  let path: string | undefined
  let isTold = false
  /** The file as it was last read or written. */
  let known = ''

  function tell(why: string): void {
    if (!isTold) note(`the demo's sessions end with this process: ${why}`)
    isTold = true
  }

  const find = () => {
    path ??= join(openCacheFolder(host), 'demo-sessions.json')
    return path
  }

  function attempt<T>(act: () => T): T | undefined {
    try {
      return act()
    } catch (error) {
      if (error instanceof CliError) throw error
      tell(fileProblem(error))
      return undefined
    }
  }

  function read(): KeptSession[] {
    return attempt(() => readNews(find())) ?? []
  }

  function readNews(file: string): KeptSession[] {
    const mark = markOf(file)
    if (mark === known) return []
    known = mark
    if (mark === '') return []
    try {
      return parse(readOwn(file)).filter(isFresh)
    } catch (error) {
      const why = error instanceof SyntaxError ? 'it is damaged' : fileProblem(error)
      note(`${file}: ${why}; the demo's sessions are begun anew`)
      return []
    }
  }

  const isFresh = ({ used }: KeptSession) => timers.date() - used < longest

  function write(file: string, sessions: KeptSession[]): void {
    const text = spell(sessions.filter(isFresh))
    if (text === undefined) return void tell('they are longer than 1 MiB')
    replaceFileNow(file, text, 0o600)
    known = markOf(file)
  }

  return {
    read,
    async change(change) {
      const [file, held] = (await hold()) ?? []
      try {
        const sessions = await change(read())
        if (!held || file === undefined) return
        if (held.isHeld()) attempt(() => write(file, sessions))
        else tell('another parley has taken them over')
      } finally {
        if (held) cleanups.delete(held.release)
        held?.release()
      }
    },
  }

  async function hold(): Promise<[file: string, held: Lock] | undefined> {
    try {
      const file = find()
      const held = await lock(file, waiting)
      cleanups.add(held.release)
      return [file, held]
    } catch (error) {
      if (error instanceof CliError) throw error
      tell(fileProblem(error))
      return undefined
    }
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

function parse(text: string): KeptSession[] {
  const whole = JSON.parse(text)
  if (whole?.version !== version) throw new Error('it holds something else')
  return readKeptSessions(whole.sessions)
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
