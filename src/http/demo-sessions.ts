import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Context } from '../context.ts'
import type { StoredSession } from '../emulator/sessions/agent.ts'
import type { SessionStore } from '../emulator/sessions/sessions.ts'
import { CliError, describeFileError } from '../errors.ts'
import { requireCacheFolder } from '../io/cache-folder.ts'
import { writeFileAtomically } from '../io/file-output.ts'
import { acquireLock } from '../io/lock.ts'
import { isObject, tryParseJson } from '../wire/json/parse.ts'

const unusedSessionLifetimeMs = 60 * 60 * 1000

const version = 8

export function openDemoSessions({ host, messages, cleanups, deadline }: Context): SessionStore {
  let isReported = false
  let lastContent = ''
  const isFresh = ({ updated }: StoredSession) =>
    host.timers.wallTime() - Date.parse(updated) < unusedSessionLifetimeMs
  const findFile = () => join(requireCacheFolder(host), 'demo-sessions.json')

  function noteOnce(words: string): void {
    if (!isReported) messages.note(words)
    isReported = true
  }

  function noteUnsaved(error: unknown): void {
    if (error instanceof CliError) throw error
    noteOnce(`the demo's sessions are lost when this process ends: ${describeFileError(error)}`)
  }

  return {
    read() {
      try {
        const file = findFile()
        const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
        if (text === lastContent) return []
        lastContent = text
        const whole = tryParseJson(text)
        // Only parley writes this file, and replaces it atomically. So a file with this version is complete.
        if (isObject(whole) && whole.version === version && Array.isArray(whole.sessions))
          return whole.sessions.filter(isFresh)
        noteOnce(`${file}: it is damaged or from another version, so the demo starts with new sessions`)
      } catch (error) {
        noteUnsaved(error)
      }
      return []
    },
    async change(change) {
      const held = await Promise.resolve()
        .then(() => acquireLock(findFile(), { name: 'the file of the demo sessions', deadline, messages }))
        .catch(noteUnsaved)
      if (!held) return void change()
      cleanups.add(held.release)
      try {
        const sessions = change()
        if (!held.isHeld()) throw new Error('another parley process took over the lock of the sessions')
        const text = JSON.stringify({ version, sessions: sessions.filter(isFresh) })
        writeFileAtomically(findFile(), text, { mode: 0o600 })
        lastContent = text
      } catch (error) {
        noteUnsaved(error)
      } finally {
        cleanups.delete(held.release)
        held.release()
      }
    },
  }
}
