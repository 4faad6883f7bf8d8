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
import { interruptedResult, type Reply, type ReplyLine, stepReply } from './replying.ts'
import { type AuditedTask, hashTask, ListSnapshot, stepTask } from './task.ts'

/** The session of a run, and its deadline. */
interface AuditTarget {
  /** Address of the service. */
  address: string | undefined
  session: string
  deadline: Deadline
}

/** A line of the audit without `session` and `time`. A decision has the fields of its judgement. */
export interface AuditEntry extends Partial<Omit<ReturnType<typeof toAuditFields>, 'toolUse'>> {
  /** Null if the line is not about a tool use. */
  toolUse: string | null
  event: AuditEvent
  /** Hash of the task. */
  task?: string
  /** State of the list before a task was sent. */
  known?: ListSnapshot
  /** Result of a command, in the form in which it is sent. */
  result?: SessionEvent
  /** Id of the last idle event that was known when a reply was sent. */
  rest?: string | undefined
}

/** Steps of a reply whose lines have no further fields. */
const steps = ['decision', 'start', 'accepted', 'refused', 'unknown', 'answered-elsewhere'] as const

/**
 * Steps of a reply or of a task, a denied tool use that ran without a question, or an interrupt before it is
 * posted.
 */
const events = [...steps, 'end', 'sent', 'done', 'not-asked', 'interrupt'] as const
type AuditEvent = (typeof events)[number]

/**
 * The record of decisions and actions. After a kill, the record shows how far a run got. The class also holds
 * the lock of the session, which one run has at a time. Without a file, the class is only the lock.
 */
export class Audit {
  readonly #context: Context
  readonly #session: string
  readonly #locks: Lock[] = []
  #isClosed = false
  /** The state in which earlier runs left the reply to each tool use, by id. */
  readonly earlier = new Map<string, Reply>()
  /**
   * Descriptions of the tool uses that earlier runs denied, or that ran although the policy denies them, by
   * id.
   */
  readonly denied = new Map<string, string>()
  /**
   * Failed and unfinished --tool commands of the last task, in this run and earlier ones: descriptions by the
   * id of the tool use.
   */
  readonly failedCommands = new Map<string, string>()
  #file: AppendedFile | undefined
  /** The last task of the session, unless the task is done. */
  task: AuditedTask | undefined
  /**
   * Time when a run started to interrupt the session, in milliseconds since the epoch by this machine's wall
   * clock; NaN if unknown. `undefined` if no run did so since the last task, or the service refused the
   * interrupt. The interrupt may have arrived.
   */
  interrupt: number | undefined
  /**
   * Fingerprints of the tool uses, by id. The fingerprint is empty if earlier runs decided about two tool
   * uses of that id.
   */
  readonly #fingerprints = new Map<string, string>()

  private constructor(context: Context, session: string) {
    this.#context = context
    this.#session = session
    context.cleanups.add(() => this.close())
  }

  /**
   * Waits until no other run of this user on this machine works on the session, and no run, on any machine,
   * uses the same audit file. Reads the file at `path`. Throws a `CliError` of kind `file`, also at the
   * deadline.
   */
  static async open(context: Context, workplace: AuditTarget, path: string | undefined): Promise<Audit> {
    const audit = new Audit(context, workplace.session)
    const name = `the audit file ${path}`
    try {
      if (path !== undefined) audit.#file = new AppendedFile({ path: absolutePath(context.host, path), name })
      await audit.#lockSession(workplace)
      if (path !== undefined) await audit.#lockFile(workplace, path)
      if (audit.#file) await audit.#read(audit.#file, name)
      return audit
    } catch (error) {
      audit.close()
      throw asFileError(error, name)
    }
  }

  /**
   * Locks the session. A container may have no folder for the lock. Then the run continues without the lock
   * and prints a note.
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
      messages.note(`another run of ${session} would not wait for this run: ${describeFileError(error)}`)
    }
  }

  /** Locks the audit file, because runs of other sessions may write the same file at the same time. */
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
   * Returns whether earlier runs decided about another tool use of this id: with another type, server, name
   * or input.
   */
  hasOther(use: KnownToolUse): boolean {
    const fingerprint = this.#fingerprints.get(use.id)
    return fingerprint !== undefined && fingerprint !== getToolUseFingerprint(use, use.text)
  }

  /**
   * Writes a line to the disk before the action that the line announces. Throws a `CliError` of kind `file`,
   * also if another run may have taken over the session.
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

  /** A later run can resume this run. */
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
   * Applies a step of the task or of the interrupt. A line of an interrupt names neither a tool use nor a
   * task.
   */
  #step({ event, time, toolUse, task, known }: Record<string, unknown>): void {
    const isOfTask = typeof task === 'string'
    if (isOfTask)
      this.task = stepTask(this.task, { event, hash: task, known: ListSnapshot().safeParse(known).data })
    if (event === 'interrupt') this.interrupt = Date.parse(String(time))
    // A new task begins another turn, to which an earlier interrupt does not belong.
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

/** Normalizes an address, so that all forms of an address get the same lock. */
const normalizeAddress = (address: string) =>
  (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

const digest = (text: string) => hashTask(Buffer.from(text)).slice(0, 16)

/** Inserts the input's source text before the event. */
function toLine(entry: AuditEntry, session: string, time: string): string {
  const { toolUse, task, type, server, name, input, event, ...more } = entry
  const head = JSON.stringify({ time, session, toolUse, task, type, server, name }).slice(0, -1)
  const tail = JSON.stringify({ event, ...more }).slice(1)
  return `${head},${input === undefined ? '' : `"input":${input},`}${tail}`
}

/** Maximum length of a line, in bytes. No event of a service is longer. */
const maxLineBytes = 2 ** 27

/**
 * Reads an audit line by line. `name` is its name in messages. Throws a `CliError` if a line does not belong
 * to an audit, because the file is something else.
 */
export async function* readEntries(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<{ entry: Record<string, unknown>; text: string }> {
  let isFirst = true
  for await (const lines of splitLines(chunks, maxLineBytes)) {
    for (const { bytes } of lines) {
      const text = bytes && Buffer.from(bytes).toString()
      // If two runs both complete a torn line, an empty line follows.
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

/** Start of every line, with other digits. */
const opening = '{"time":"0000-00-00T00:00:00.000Z","session":"'

/**
 * Returns whether a line is not JSON because a run was killed while it wrote the line. A later run completed
 * the line.
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
