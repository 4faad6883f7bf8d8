import { closeSync, constants, existsSync, fstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import type { KeptSession } from '../emulator/sessions/agent.ts'
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
  let isTold = false
  /** The file's text as it was last read or written. */
  let known = ''
  const isFresh = ({ used }: KeptSession) => timers.date() - used < longest
  const findFile = () => join(openCacheFolder(host), 'demo-sessions.json')

  function tellOnce(words: string): void {
    if (!isTold) note(words)
    isTold = true
  }

  function giveUp(error: unknown): undefined {
    if (error instanceof CliError) throw error
    tellOnce(`the demo's sessions end with this process: ${fileProblem(error)}`)
  }

  function read(): KeptSession[] {
    try {
      return readNews(findFile())
    } catch (error) {
      giveUp(error)
      return []
    }
  }

  function readNews(file: string): KeptSession[] {
    try {
      const text = readOwn(file)
      if (text === known) return []
      known = text
      return parse(text).filter(isFresh)
    } catch (error) {
      const why = error instanceof SyntaxError ? 'it is damaged' : fileProblem(error)
      tellOnce(`${file}: ${why}; the demo's sessions are begun anew`)
      return []
    }
  }

  function write(sessions: KeptSession[]): void {
    const text = spell(sessions.filter(isFresh))
    if (text === undefined) throw new Error('they are longer than 1 MiB')
    replaceFileNow(findFile(), text, 0o600)
    known = text
  }

  return {
    read,
    async change(change) {
      const held = await Promise.resolve()
        .then(() => lock(findFile(), waiting))
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

/** Empty if there is none. */
function readOwn(path: string): string {
  if (!existsSync(path)) return ''
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
  if (text === '') return []
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
