import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Context } from '../../context.ts'
import { asFileFailure, CliError, fileProblem } from '../../errors.ts'
import { openCacheFolder } from '../../io/cache-folder.ts'
import { type Lock, lockForRun } from '../../io/lock.ts'
import { absolutePath } from '../../io/paths.ts'

/** What a run works on. */
export interface Workplace {
  /** The service's address. */
  address: string | undefined
  session: string
  /** When the run has to be over, by the forward clock, Infinity for no deadline. */
  deadline: number
}

/** The right to work on a session, which one run has at a time. */
export interface SessionLock {
  /**
   * Throws a `CliError` of kind `file` if this run released it, or another run may have taken it because this one
   * seemed dead.
   */
  requireHeld(): void
  release(): void
}

/**
 * Waits until no other run of this user on this machine works on the session, and no run that has the same audit file, which
 * several machines may share. Throws a `CliError` of kind `file` at the deadline.
 */
export async function lockSession(
  context: Context,
  workplace: Workplace,
  audit: string | undefined,
): Promise<SessionLock> {
  const locks: { lock: Lock; name: string }[] = []
  let isReleased = false
  const release = () => {
    isReleased = true
    context.cleanups.delete(release)
    for (const { lock } of locks) lock.release()
  }
  context.cleanups.add(release)
  try {
    const ofSession = await lockHere(context, workplace)
    if (ofSession) locks.push({ lock: ofSession, name: `the session ${workplace.session}` })
    if (audit !== undefined)
      locks.push({ lock: await lockAudit(context, workplace, audit), name: `the audit file ${audit}` })
  } catch (error) {
    release()
    throw error
  }
  return {
    requireHeld() {
      if (isReleased) throw new CliError('file', `the run that worked on ${workplace.session} is over`)
      const lost = locks.find(({ lock }) => !lock.isHeld())
      if (!lost) return
      const why = `its lock is gone, so another run may work on ${workplace.session}`
      throw new CliError('file', `${lost.name}: ${why}`)
    },
    release,
  }
}

/** A container may have no folder for it. Then the run goes on without the lock, and says so. */
async function lockHere(
  context: Context,
  { address = '', session, deadline }: Workplace,
): Promise<Lock | undefined> {
  const name = `session-${digest(`${spell(address)}\0${session}`)}`
  try {
    const path = join(openCacheFolder(context.host), name)
    return await lockForRun(path, waiting(context, `session ${session}`, deadline))
  } catch (error) {
    if (error instanceof CliError) throw error
    context.note(`another run of ${session} would not wait for this one: ${fileProblem(error)}`)
    return undefined
  }
}

/** Runs of other sessions may write the same file at the same time. */
async function lockAudit(context: Context, { session, deadline }: Workplace, audit: string): Promise<Lock> {
  const end = `.${digest(session)}`
  try {
    const path = absolutePath(context.host, audit) + end
    return await lockForRun(path, waiting(context, `${audit} for ${session}`, deadline))
  } catch (error) {
    throw asFileFailure(error, `the lock of the audit file, ${audit}${end}.parley-lock`)
  }
}

const waiting = ({ note, timers }: Context, name: string, deadline: number) => ({
  name,
  deadline,
  timers,
  note,
})

/** The same for each spelling of an address. */
const spell = (address: string) =>
  (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)
