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
export class SessionLock {
  readonly session: string
  readonly #locks: { lock: Lock; name: string }[] = []
  #isReleased = false

  private constructor(session: string) {
    this.session = session
  }

  /**
   * Waits until no other run of this user on this machine works on the session, and no run that has the same audit file,
   * which several machines may share. Throws a `CliError` of kind `file` at the deadline.
   */
  static async take(context: Context, workplace: Workplace, audit: string | undefined): Promise<SessionLock> {
    const { session } = workplace
    const taken = new SessionLock(session)
    context.cleanups.add(() => taken.release())
    try {
      const lock = await lockHere(context, workplace)
      if (lock) taken.#locks.push({ lock, name: `the session ${session}` })
      const ofFile = audit === undefined ? undefined : await lockAudit(context, workplace, audit)
      if (ofFile) taken.#locks.push({ lock: ofFile, name: `the audit file ${audit}` })
      return taken
    } catch (error) {
      taken.release()
      throw error
    }
  }

  /**
   * Throws a `CliError` of kind `file` if this run released it, or another run may have taken it because this one
   * seemed dead.
   */
  requireHeld(): void {
    if (this.#isReleased) throw new CliError('file', `the run that worked on ${this.session} is over`)
    const lost = this.#locks.find(({ lock }) => !lock.isHeld())
    if (lost)
      throw new CliError('file', `${lost.name}: its lock is gone, so another run may work on ${this.session}`)
  }

  release(): void {
    this.#isReleased = true
    for (const { lock } of this.#locks) lock.release()
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
    return await lockForRun(path, { ...context, name: `session ${session}`, deadline })
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
    return await lockForRun(path, { ...context, name: `${audit} for ${session}`, deadline })
  } catch (error) {
    throw asFileFailure(error, `the lock of the audit file, ${audit}${end}.parley-lock`)
  }
}

/** The same for each spelling of an address. */
const spell = (address: string) =>
  (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

const digest = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 16)
