import { join } from 'node:path'
import type { Context } from '../../context.ts'
import type { Deadline } from '../../deadline.ts'
import { asFileError, CliError, describeFileError } from '../../errors.ts'
import { AppendedFile } from '../../io/appended-file.ts'
import { openCacheFolder } from '../../io/cache-folder.ts'
import { type Lock, lockForRun } from '../../io/lock.ts'
import { absolutePath } from '../../io/paths.ts'
import { splitLines } from '../../io/raw-lines.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { readText, SessionEvent } from '../../wire/sessions/session-event.ts'
import { getToolUseFingerprint } from '../session-state.ts'
import type { KnownToolUse, toAuditFields } from './judgement.ts'
import { interruptedResult, type ReplyLine, type ReplyState, stepReply } from './replying.ts'
import { type AuditedTask, hashTask, ListSnapshot, stepTask } from './task.ts'

/** The session that a run locks, and the run's deadline. */
interface AuditTarget {
  /** Address of the service. */
  address: string | undefined
  session: string
  deadline: Deadline
}

/**
 * Fields of an audit line, without `session` and `time`. The line of a decision has the fields of its
 * judgement.
 */
export interface AuditEntry extends Partial<Omit<ReturnType<typeof toAuditFields>, 'toolUse'>> {
  /** Null if the line is not about a tool use. */
  toolUse: string | null
  event: AuditEvent
  /** Hash of the task. */
  task?: string
  /** Summary of the session's event list before the task was sent. */
  known?: ListSnapshot
  /** Result of a command, as the event that is sent. */
  result?: SessionEvent
  /** Id of the last idle event that was known when a reply was sent. */
  rest?: string | undefined
}

/** Steps of a reply whose lines need no further fields. */
const steps = ['decision', 'start', 'accepted', 'refused', 'unknown', 'answered-elsewhere'] as const

/**
 * Values of `event`: steps of a reply or a task; `not-asked` for a denied tool use that ran without a
 * question; `interrupt` before an interrupt is posted.
 */
const events = [...steps, 'end', 'sent', 'done', 'not-asked', 'interrupt'] as const
type AuditEvent = (typeof events)[number]

/**
 * The audit file, with a line for each decision and action. After a kill, the file shows how far a run got.
 * Also holds the lock of the session, which one run has at a time. Without `--audit` it only holds the lock.
 */
export class Audit {
  readonly #context: Context
  readonly #session: string
  readonly #locks: Lock[] = []
  #isClosed = false
  /** States in which earlier runs left their replies, by tool use id. */
  readonly earlier = new Map<string, ReplyState>()
  /**
   * Descriptions of the tool uses that earlier runs denied, or that ran although the policy denies them, by
   * id.
   */
  readonly denied = new Map<string, string>()
  /**
   * Descriptions of the failed and unfinished --tool commands of the last task, in this run and earlier ones,
   * by tool use id.
   */
  readonly failedCommands = new Map<string, string>()
  #file: AppendedFile | undefined
  /** The last task of the session, unless the task is done. */
  task: AuditedTask | undefined
  /**
   * Time when a run began to post an interrupt, in milliseconds since the epoch by this machine's wall clock;
   * NaN if unknown. The interrupt may have arrived. `undefined` if no run posted one since the last task, or
   * if the service refused it.
   */
  interrupt: number | undefined
  /**
   * Fingerprints of the tool uses about which earlier runs decided, by id. The fingerprint is empty if they
   * decided about two different tool uses with the same id.
   */
  readonly #fingerprints = new Map<string, string>()

  private constructor(context: Context, session: string) {
    this.#context = context
    this.#session = session
    context.cleanups.add(() => this.close())
  }

  /**
   * Locks the session and the audit file, then reads the file. Waits until no other run of this user on this
   * machine works on the session, and until no run on any machine uses the same file. Throws a `CliError` of
   * kind `file`, also if the deadline passes.
   */
  static async open(context: Context, target: AuditTarget, path: string | undefined): Promise<Audit> {
    const audit = new Audit(context, target.session)
    const name = `the audit file ${path}`
    try {
      if (path !== undefined) audit.#file = new AppendedFile({ path: absolutePath(context.host, path), name })
      await audit.#lockSession(target)
      if (path !== undefined) await audit.#lockFile(target, path)
      if (audit.#file) await audit.#read(audit.#file, name)
      return audit
    } catch (error) {
      audit.close()
      throw asFileError(error, name)
    }
  }

  /**
   * Locks the session. In a container without a folder for the lock, prints a note and continues without the
   * lock.
   */
  async #lockSession({ address = '', session, deadline }: AuditTarget): Promise<void> {
    const { host, messages } = this.#context
    try {
      const path = join(
        openCacheFolder(host),
        `session-${digest(`${normalizeAddress(address)}\0${session}`)}`,
      )
      await this.#lock(path, `session ${session}`, deadline)
    } catch (error) {
      if (error instanceof CliError) throw error
      messages.note(`cannot lock ${session}, so a second run would not wait: ${describeFileError(error)}`)
    }
  }

  /**
   * Locks the audit file for this session only: runs of other sessions may write to the same file at the same
   * time.
   */
  async #lockFile({ session, deadline }: AuditTarget, audit: string): Promise<void> {
    const end = `.${digest(session)}`
    const path = absolutePath(this.#context.host, audit) + end
    try {
      await this.#lock(path, `${audit} for ${session}`, deadline)
    } catch (error) {
      throw asFileError(error, `the lock of the audit file, ${audit}${end}.parley-lock`)
    }
  }

  async #lock(path: string, name: string, deadline: Deadline): Promise<void> {
    this.#locks.push(await lockForRun(path, { ...this.#context, name, deadline }))
  }

  /**
   * Returns whether earlier runs decided about a different tool use with this id: another type, server, name
   * or input.
   */
  isDifferentToolUse(use: KnownToolUse): boolean {
    const fingerprint = this.#fingerprints.get(use.id)
    return fingerprint !== undefined && fingerprint !== getToolUseFingerprint(use, use.text)
  }

  /**
   * Writes a line to the disk. Callers act only after this. Throws a `CliError` of kind `file`, also if
   * another run may have taken over the session.
   */
  add(entry: AuditEntry): void {
    this.requireLocks()
    this.#noteCommand({ ...entry })
    if (!this.#file) return
    const time = new Date(this.#context.host.timers.wallTime()).toISOString()
    this.#file.append(`${toLine(entry, this.#session, time)}\n`)
    this.#file.sync()
    this.#step({ ...entry, time })
  }

  /** Marks the task as done. */
  endTask(): void {
    if (this.task?.is === 'accepted') this.add({ toolUse: null, task: this.task.hash, event: 'done' })
  }

  /** Throws a `CliError` of kind `file` if another run may have taken over the session. */
  requireLocks(): void {
    if (this.#isClosed) throw new CliError('file', `the run that worked on ${this.#session} is over`)
    const lost = this.#locks.find((lock) => !lock.isHeld())
    if (lost)
      throw new CliError(
        'file',
        `${lost.name}: its lock was lost, so another run may use the file or session`,
      )
  }

  /** An audit file exists, so a later run can resume this run. */
  get hasFile(): boolean {
    return this.#file !== undefined
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#file?.close()
    for (const lock of this.#locks) lock.release()
  }

  async #read(file: AppendedFile, name: string): Promise<void> {
    for await (const { entry, text } of readEntries(file.read(), name)) {
      if (entry.session !== this.#session) continue
      this.#noteCommand(entry)
      this.#step(entry)
      const { toolUse: id } = entry
      if (typeof id !== 'string') continue
      const line = readLine(entry)
      if (line) this.earlier.set(id, stepReply(this.earlier.get(id) ?? { is: 'deciding' }, line))
      this.#noteDenied(id, entry)
      this.#addFingerprint(id, entry, text)
    }
    file.restrictToOwner()
    file.completeLastLine()
  }

  /**
   * Applies a line about the task or about an interrupt. The line of an interrupt has neither a tool use nor
   * a task.
   */
  #step({ event, time, toolUse, task, known }: Record<string, unknown>): void {
    const isOfTask = typeof task === 'string'
    if (isOfTask)
      this.task = stepTask(this.task, { event, hash: task, known: ListSnapshot().safeParse(known).data })
    if (event === 'interrupt') this.interrupt = Date.parse(String(time))
    // A new task begins another turn, so an interrupt of the earlier turn no longer matters.
    if (isOfTask ? event === 'sent' : event === 'refused' && toolUse === null) this.interrupt = undefined
  }

  #noteCommand({ event, toolUse, task, name, result }: Record<string, unknown>): void {
    if (event === 'sent' && typeof task === 'string') this.failedCommands.clear()
    if (typeof toolUse !== 'string') return
    const hasFailed = isObject(result) && result.is_error === true
    if (event === 'start' || (event === 'end' && hasFailed))
      this.failedCommands.set(toolUse, `${name} ${toolUse}: ${hasFailed ? 'failed' : interruptedResult.text}`)
    else if (event === 'end') this.failedCommands.delete(toolUse)
  }

  #addFingerprint(id: string, entry: Record<string, unknown>, text: string): void {
    const { event, input } = entry
    if (event !== 'decision' || input === undefined) return
    const fingerprint = getToolUseFingerprint(entry, text)
    const isSame = (this.#fingerprints.get(id) ?? fingerprint) === fingerprint
    this.#fingerprints.set(id, isSame ? fingerprint : '')
  }

  #noteDenied(id: string, { event, decision, name, by, rule, reason }: Record<string, unknown>): void {
    if (event === 'answered-elsewhere' || (event === 'decision' && decision !== 'deny'))
      this.denied.delete(id)
    if (decision !== 'deny') return
    const who = by === 'rule' ? `rules[${rule}]` : by
    this.denied.set(id, `deny ${name} ${id} (${who}${typeof reason === 'string' ? `: ${reason}` : ''})`)
  }
}

/** Returns the same text for all forms of an address, so that all get the same lock. */
const normalizeAddress = (address: string) =>
  (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

const digest = (text: string) => hashTask(Buffer.from(text)).slice(0, 16)

/** Formats a line as JSON. The input is inserted as its source text. */
function toLine(entry: AuditEntry, session: string, time: string): string {
  const { toolUse, task, type, server, name, input, event, ...more } = entry
  const head = JSON.stringify({ time, session, toolUse, task, type, server, name }).slice(0, -1)
  const tail = JSON.stringify({ event, ...more }).slice(1)
  return `${head},${input === undefined ? '' : `"input":${input},`}${tail}`
}

/** Maximum length of a line. No event of a service is longer. */
const maxLineBytes = 2 ** 27

/**
 * Reads the lines of an audit file. `name` is the file's name in messages. Throws a `CliError` if a line has
 * another form, because the file is then not an audit.
 */
export async function* readEntries(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<{ entry: Record<string, unknown>; text: string }> {
  let isFirst = true
  for await (const lines of splitLines(chunks, maxLineBytes)) {
    for (const { bytes } of lines) {
      const text = bytes && Buffer.from(bytes).toString()
      // If two runs both end an unfinished line, an empty line follows.
      if (text === '' && !isFirst) continue
      isFirst = false
      const entry = text === undefined ? undefined : tryParseJson(text)
      if (entry === undefined ? !isTorn(text) : !isEntry(entry))
        throw new CliError('file', `${name}: it is not an audit file`)
      if (text !== undefined && isObject(entry)) yield { entry, text }
    }
  }
}

const isEntry = (entry: unknown): boolean =>
  isObject(entry) &&
  typeof entry.time === 'string' &&
  typeof entry.session === 'string' &&
  (events as readonly unknown[]).includes(entry.event)

/** Start of every line, with all digits replaced by 0. */
const opening = '{"time":"0000-00-00T00:00:00.000Z","session":"'

/**
 * Returns whether a line is unfinished: a run was killed while it wrote the line, and a later run ended the
 * line.
 */
function isTorn(text: string | undefined): boolean {
  const head = text?.slice(0, opening.length).replace(/\d/g, '0')
  return head !== undefined && head !== '' && opening.startsWith(head)
}

function readLine({ event, time, rest, result }: Record<string, unknown>): ReplyLine | undefined {
  if (event === 'end') {
    const sent = SessionEvent.safeParse(result).data
    // Earlier versions did not write the result, so it is unknown.
    return sent && { event, result: { text: readText(sent), isError: sent.is_error === true } }
  }
  if (event === 'sent') {
    const idleEvents = new Set(typeof rest === 'string' ? [rest] : [])
    return { event, sent: { at: Date.parse(String(time)), idleEvents } }
  }
  const plain = steps.find((each) => each === event)
  return plain && { event: plain }
}
