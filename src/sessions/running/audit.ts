import { join } from 'node:path'
import type { Context } from '../../context.ts'
import type { Deadline } from '../../deadline.ts'
import { CliError, convertFileErrors, describeFileError, toFileFailure } from '../../errors.ts'
import { AppendedFile } from '../../io/appended-file.ts'
import { requireCacheFolder } from '../../io/cache-folder.ts'
import { acquireLock, type FileLock } from '../../io/lock.ts'
import { toAbsolutePath } from '../../io/paths.ts'
import { splitLines } from '../../io/raw-lines.ts'
import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { readEventText, SessionEvent } from '../../wire/sessions/session-event.ts'
import type { ParsedToolUse } from '../policy/tool-use.ts'
import { createToolResultEvent } from '../reply-events.ts'
import { getToolUseFingerprint } from '../session-state.ts'
import { findToolInput } from '../tool-use-summary.ts'
import { describeToolUse, type Judgement } from './judgement.ts'
import type { RunPlan } from './plan.ts'
import {
  applyReplyAuditLine,
  interruptedCommandResult,
  type ReplyAuditLine,
  type ReplyState,
  resumeReplyState,
} from './reply-state.ts'
import { type AuditedTask, applyTaskAuditLine, computeShortSha256 } from './task.ts'

/** A line of the audit file, before `Audit.add` adds `session` and `time`. */
type AuditEntry = Partial<Omit<ReturnType<typeof createDecisionFields>, 'toolUse'>> & {
  /** Null in a line about the task or an interrupt. */
  toolUse: string | null
  event: (typeof events)[number]
  task?: string
  known?: AuditedTask['known'] | undefined
  result?: SessionEvent
  /** Id of the last idle event before a reply was sent. The field has this name in the audit file. */
  rest?: string | undefined
}

const replySteps = ['decision', 'start', 'accepted', 'refused', 'unknown', 'answered-elsewhere'] as const

/**
 * Values of `event`. `interrupt`: the run is about to post an interrupt. `not-asked`: the service ran a tool
 * use that the policy denies. The other values are steps of a reply (`ReplyState`) or of a task
 * (`AuditedTask`).
 */
const events = [...replySteps, 'end', 'sent', 'done', 'not-asked', 'interrupt'] as const

/**
 * Decisions, replies and tasks of a run, and the audit file of `--audit` with a line for each of them. After
 * a killed run, the next run reads the file to resume. `Audit` also locks the session, so that only one run
 * works on the session.
 */
export class Audit {
  readonly #context: Context
  readonly #session: string
  readonly #locks: FileLock[] = []
  #isFileLost = false
  #isClosed = false
  /** States of the replies of this run and of earlier runs, by tool use id. */
  readonly replies = new Map<string, ReplyState>()
  /** Replies that may or may not have arrived, by tool use id. This run looks for them in the event list. */
  readonly unconfirmed = new Map<string, { use: ParsedToolUse; reason: string }>()
  /**
   * Tool uses that this run or an earlier run denied, by id. `hasRun` is true for a tool use that ran although
   * the policy denies it.
   */
  readonly denied = new Map<string, { hasRun: boolean; text: string }>()
  /**
   * Decisions of this run, by tool use id. If the session no longer needs the reply, the decision is removed.
   */
  readonly judgements = new Map<string, Judgement>()
  /** Decisions of this run that took effect, by tool use id. See `applyDecision`. */
  readonly effective = new Map<string, Judgement['decision']>()
  /** Descriptions of the failed and unfinished `--tool` commands since the last task, by tool use id. */
  readonly failedCommands = new Map<string, string>()
  /** Ids of the tool uses whose command has ended, but whose `end` line could not be written. */
  readonly unrecorded = new Set<string>()
  #file: AppendedFile | undefined
  /** The last task in the file. `undefined` if the task is done, or if the service refused it. */
  task: AuditedTask | undefined
  /** The last event about each task in the file, by the task's hash. */
  readonly lastTaskEvents = new Map<string, unknown>()
  /** True if a run posted an interrupt since the last task, and the service did not refuse it. */
  hasInterrupt = false
  /** Wall-clock time when an earlier run last found that the session did not wait for a tool use any more. */
  answeredElsewhereAt = -Infinity
  /**
   * Fingerprints of the tool uses about which earlier runs decided, by id. If two different tool uses have
   * the same id, the fingerprint is empty, so that it matches no tool use.
   */
  readonly #fingerprints = new Map<string, string>()

  private constructor(context: Context, session: string) {
    this.#context = context
    this.#session = session
    context.cleanups.add(() => this.close())
  }

  /**
   * Locks the session and the audit file, then reads the file. Waits while another run works on the session
   * on this machine, or uses the file for this session on any machine. Throws a `CliError` of kind `file`,
   * also if the deadline passes.
   */
  static async open(context: Context, { address, auditPath: path, parts }: RunPlan): Promise<Audit> {
    const audit = new Audit(context, parts.params.session)
    const name = `the audit file ${path}`
    try {
      if (path !== undefined) audit.#file = new AppendedFile(toAbsolutePath(context.host, path), name)
      // The lock is only for this session, because runs of other sessions may write to the same file.
      const lockedName = `${path}.${digest(parts.params.session)}`
      await audit.#lockSession(address, parts.deadline)
      if (audit.#file)
        await convertFileErrors(`the lock of the audit file, ${lockedName}.parley-lock`, () =>
          audit.#lock(
            toAbsolutePath(context.host, lockedName),
            `${path} for ${parts.params.session}`,
            parts.deadline,
          ),
        )
      if (audit.#file) await audit.#read(audit.#file, name)
      return audit
    } catch (error) {
      audit.close()
      throw toFileFailure(error, name)
    }
  }

  /** A container may have no folder for the lock. The run then prints a note and continues without a lock. */
  async #lockSession(address = '', deadline: Deadline): Promise<void> {
    const { host, messages } = this.#context
    const session = this.#session
    try {
      const name = `session-${digest(`${normalizeAddress(address)}\0${session}`)}`
      await this.#lock(join(requireCacheFolder(host), name), `session ${session}`, deadline)
    } catch (error) {
      if (error instanceof CliError) throw error
      messages.note(`cannot lock ${session}, so two runs may work on it: ${describeFileError(error)}`)
    }
  }

  async #lock(target: string, name: string, deadline: Deadline): Promise<void> {
    this.#locks.push(await acquireLock(target, { ...this.#context, name, deadline }))
  }

  differsFromDecidedToolUse(use: ParsedToolUse): boolean {
    const fingerprint = this.#fingerprints.get(use.id)
    return fingerprint !== undefined && fingerprint !== getToolUseFingerprint(use, use.text)
  }

  /**
   * Writes a line to the disk. Callers act only after the line is written, so that a killed run leaves a
   * trace of each action. Throws a `CliError` of kind `file`, also if another run may have taken over the
   * session.
   */
  add(entry: AuditEntry): void {
    this.requireLocks()
    this.#updateFailedCommands(entry)
    if (entry.toolUse !== null) this.#updateDenied(entry.toolUse, entry, entry.input)
    if (!this.#file) return
    const time = new Date(this.#context.host.timers.wallTime()).toISOString()
    try {
      this.#file.append(`${toLine(entry, this.#session, time)}\n`)
      this.#file.sync()
    } catch (error) {
      this.#isFileLost = this.#file.findChange() !== undefined
      throw error
    }
    this.#updateTask(entry)
  }

  addReplyStep(use: ParsedToolUse, line: ReplyAuditLine, more: Partial<AuditEntry> = {}): void {
    const { id, type, server, name } = use
    const fields = createReplyFields(use, line)
    // The command has ended even if its line cannot be written.
    if (line.event === 'end') {
      this.#updateReply(id, line)
      this.unrecorded.add(id)
    }
    this.add({ toolUse: id, type, server, name, event: line.event, ...fields, ...more })
    if (line.event === 'end') this.unrecorded.delete(id)
    else this.#updateReply(id, line)
    if (line.event === 'answered-elsewhere') this.judgements.delete(id)
    if (line.event === 'unknown') this.unconfirmed.set(id, { use, reason: more.reason ?? '' })
  }

  /**
   * Records a decision. `staysOpen`: the run sends no reply, because nobody decided or no command executes
   * the tool.
   */
  addDecision(judgement: Judgement, staysOpen: boolean): void {
    this.addReplyStep(judgement.use, { event: 'decision', staysOpen }, createDecisionFields(judgement))
    this.judgements.set(judgement.use.id, judgement)
  }

  /** Records that the service ran a tool use that the policy denies, without waiting for a reply. */
  addUnapproved(judgement: Judgement): void {
    this.add({ event: 'not-asked', ...createDecisionFields(judgement) })
  }

  #updateReply(id: string, line: ReplyAuditLine): void {
    this.replies.set(id, applyReplyAuditLine(this.getReply(id), line))
  }

  /** Resumes the replies of earlier runs. `idleEvents` are the idle events in the first list of the session. */
  resumeReplies(idleEvents: ReadonlySet<string>): void {
    for (const [id, reply] of this.replies) this.replies.set(id, resumeReplyState(reply, idleEvents))
  }

  getReply(id: string): ReplyState {
    return this.replies.get(id) ?? { is: 'deciding' }
  }

  recordTaskDone(): void {
    if (this.task?.is === 'accepted') this.add({ toolUse: null, task: this.task.hash, event: 'done' })
  }

  requireLocks(): void {
    if (this.#isClosed)
      throw new CliError(
        'file',
        `this run has already ended its work on ${this.#session}, so it sends nothing more`,
      )
    for (const lock of this.#locks) lock.requireHeld()
  }

  /** True if the next run can read this run's lines in the audit file. */
  get hasFile(): boolean {
    return this.#file !== undefined && !this.#isFileLost
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#file?.close()
    for (const lock of this.#locks) lock.release()
  }

  async #read(file: AppendedFile, name: string): Promise<void> {
    let incompleteLineOffset: number | undefined
    let isShared = false
    for await (const { entry, text = '', offset } of readAuditEntries(file.read(), name)) {
      incompleteLineOffset = offset
      if (!entry) continue
      if (entry.session !== this.#session) {
        isShared = true
        continue
      }
      this.#updateFailedCommands(entry)
      this.#updateTask(entry)
      const { toolUse: id } = entry
      if (typeof id !== 'string') continue
      if (entry.event === 'answered-elsewhere') this.answeredElsewhereAt = Date.parse(String(entry.time))
      const line = readReplyLine(entry)
      if (line) this.#updateReply(id, line)
      this.#updateDenied(id, entry, entry.input === undefined ? '' : findToolInput(text))
      this.#addFingerprint(id, entry, text)
    }
    file.restrictToOwner()
    // In a shared file, a run of another session may still be writing the last line.
    file.endLastLine(isShared ? undefined : incompleteLineOffset)
  }

  #updateTask({ event, toolUse, task, known }: Record<string, unknown>): void {
    const isOfTask = typeof task === 'string'
    if (isOfTask) {
      this.task = applyTaskAuditLine(this.task, { event, hash: task, known })
      this.lastTaskEvents.set(task, event)
    }
    if (event === 'interrupt') this.hasInterrupt = true
    // An interrupt does not affect a task that is sent later. A `refused` line with neither a tool use nor a
    // task means that the service refused the interrupt.
    if (isOfTask ? event === 'sent' : event === 'refused' && toolUse === null) this.hasInterrupt = false
  }

  #updateFailedCommands({ event, toolUse, task, name, result }: Record<string, unknown>): void {
    if (event === 'sent' && typeof task === 'string') this.failedCommands.clear()
    if (typeof toolUse !== 'string') return
    const hasFailed = isObject(result) && result.is_error === true
    if (event === 'start' || (event === 'end' && hasFailed))
      this.failedCommands.set(
        toolUse,
        `${name} ${toolUse}: ${hasFailed ? 'failed' : interruptedCommandResult.text}`,
      )
    else if (event === 'end') this.failedCommands.delete(toolUse)
  }

  #addFingerprint(id: string, entry: Record<string, unknown>, text: string): void {
    const { event, input } = entry
    if (event !== 'decision' || input === undefined) return
    const fingerprint = getToolUseFingerprint(entry, text)
    const isSame = (this.#fingerprints.get(id) ?? fingerprint) === fingerprint
    this.#fingerprints.set(id, isSame ? fingerprint : '')
  }

  #updateDenied(id: string, entry: Record<string, unknown>, inputText = ''): void {
    const { event, decision, by, rule, reason } = entry
    if (event === 'answered-elsewhere' || (event === 'decision' && decision !== 'deny'))
      this.denied.delete(id)
    if (decision !== 'deny') return
    const who = by === 'rule' ? `rules[${rule}]` : by
    const use = describeToolUse({ ...entry, id, inputText })
    const hasRun = event === 'not-asked'
    const why = `(${who}${typeof reason === 'string' ? `: ${reason}` : ''})`
    this.denied.set(id, { hasRun, text: `${hasRun ? 'ran despite deny' : 'deny'} ${use} ${why}` })
  }
}

/** Returns the same text for all spellings of an address, because all of them need the same lock. */
const normalizeAddress = (address: string) =>
  (URL.canParse(address) ? new URL(address).href : address).replace(/\/+$/, '')

const digest = (text: string) => computeShortSha256(Buffer.from(text)).slice(0, 16)

function createDecisionFields({ use, decision, by, rule, reason }: Judgement) {
  const { id: toolUse, type, server, name, inputText: input } = use
  return { toolUse, type, server, name, input, decision, by, rule, reason }
}

function toLine(entry: AuditEntry, session: string, time: string): string {
  const { toolUse, task, type, server, name, input, event, ...more } = entry
  const head = JSON.stringify({ time, session, toolUse, task, type, server, name }).slice(0, -1)
  const tail = JSON.stringify({ event, ...more }).slice(1)
  return `${head},${input === undefined ? '' : `"input":${input},`}${tail}`
}

/** No service sends an event of this length, so a file with a longer line is not an audit file. */
const maxLineBytes = 2 ** 27

/**
 * Reads the lines of an audit file. `name` is the file's name in messages. An incomplete last line has no
 * entry. Throws a `CliError` if a line is not an audit line.
 */
async function* readAuditEntries(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<{ entry?: Record<string, unknown>; text?: string; offset?: number }> {
  let isFirst = true
  for await (const lines of splitLines(chunks, maxLineBytes)) {
    for (const { bytes, lineNumber, endOffsetBytes, isWhole } of lines) {
      const text = bytes && Buffer.from(bytes).toString()
      // Two runs may both add a line break to an unfinished line, which leaves an empty line.
      if (text === '' && !isFirst) continue
      isFirst = false
      const entry = text === undefined ? undefined : tryParseJson(text)
      if (entry === undefined ? !isUnfinished(text) : !isEntry(entry))
        throw new CliError('file', `${name}: line ${lineNumber} is not an audit line; name another file`)
      if (text !== undefined && isObject(entry)) yield { entry, text }
      else if (bytes && !isWhole) yield { offset: endOffsetBytes - bytes.length }
    }
  }
}

const isEntry = (entry: unknown): boolean =>
  isObject(entry) &&
  typeof entry.time === 'string' &&
  typeof entry.session === 'string' &&
  (events as readonly unknown[]).includes(entry.event)

/** Start of every audit line, with each digit replaced by 0. */
const lineStart = '{"time":"0000-00-00T00:00:00.000Z","session":"'

/**
 * Returns whether the text is an audit line without its end. A killed run may leave such a line. The next run
 * removes it, or adds a line break if the file is shared.
 */
function isUnfinished(text: string | undefined): boolean {
  const head = text?.slice(0, lineStart.length).replace(/\d/g, '0')
  return head !== undefined && head !== '' && lineStart.startsWith(head)
}

/** Returns the fields of the audit file from which `readReplyLine` restores `line`. */
function createReplyFields(use: ParsedToolUse, line: ReplyAuditLine): Partial<AuditEntry> {
  if (line.event === 'sent') return { rest: line.sent.lastIdleEvent }
  if (line.event !== 'end') return {}
  const { result } = line
  return { result: createToolResultEvent(use, result), reason: result.isError ? result.text : undefined }
}

function readReplyLine(entry: Record<string, unknown>): ReplyAuditLine | undefined {
  const { event, time, rest, result } = entry
  if (event === 'end') {
    const sent = SessionEvent.safeParse(result).data
    // An `end` line without a result is ignored, so the command counts as still executing.
    return sent && { event, result: { text: readEventText(sent), isError: sent.is_error === true } }
  }
  if (event === 'sent') {
    const lastIdleEvent = typeof rest === 'string' ? rest : undefined
    return { event, sent: { sentAtMs: Date.parse(String(time)), lastIdleEvent } }
  }
  const plain = replySteps.find((each) => each === event)
  return plain && { event: plain }
}
