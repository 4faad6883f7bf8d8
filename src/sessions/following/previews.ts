import { createLayout } from '../../content/layout.ts'
import type { Context } from '../../context.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../../io/answer-printer.ts'
import { createWaiting } from '../../io/spinner.ts'
import type { Settings } from '../../settings/schemas.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, readPiece, readText, type SessionEvent } from '../../wire/sessions/session-event.ts'

export interface LiveFlags {
  live?: boolean
}

/**
 * The text of an agent's messages while these are made, on a terminal. Only the event that follows says what a message is:
 * what it adds is printed then, or all of it, if something else was shown.
 */
export interface Previews {
  /** Takes in a piece of a message. Shows nothing yet. */
  add(piece: SessionEvent): void
  /** Shows what has come of one message; of those that are known nothing is shown any more. */
  show(isKnown: (id: string) => boolean): Promise<void>
  /** Pieces were lost: of what was begun no more is shown. Ends a half-written line. */
  cut(): Promise<void>
  /** An event is to be printed next. Returns whether that is done, as all of its text was shown. */
  meet(item: EventItem): Promise<boolean>
  /** Nothing more comes. */
  end(): Promise<void>
}

/** A message that is being made. */
interface Draft {
  text: string
  /** How much of the text was shown, in characters. */
  shown: number
  /** The block that its last piece belongs to. */
  block: number
  /** What comes next may not follow on its text. */
  isBroken: boolean
}

/** A service may begin messages that it never ends. Further ones are shown when they are whole. */
const mostDrafts = 16

/** Of one message, in characters. */
const longestDraft = 2 ** 20

/** `undefined` if nobody wants them, or stdout is not for what happens. */
export function createPreviews(
  context: Context,
  { live: asked }: LiveFlags,
  { live, markdown }: Settings,
  isTranscript: boolean,
): Previews | undefined {
  const { output, cleanups, openLine, note, flags } = context
  if (!(asked ?? live) || !output.isTerminal || !isTranscript || flags.raw) return undefined
  const drafts = new Map<string, Draft>()
  /** The id of the message that is shown. */
  let current: string | undefined
  let printer: AnswerPrinter | undefined
  const waiting = createWaiting(context, context.timers.now())
  const shown = { ...context, output: waiting.over(output) }

  /** What follows is laid out anew. Returns whether a half-written line was ended. */
  function breakLine(): boolean {
    const open = printer
    printer = undefined
    openLine.end = undefined
    waiting.stop()
    return open?.breakLine() ?? false
  }

  /** Something else is said next: a table that is kept back comes after it. */
  function makeRoom(): void {
    if (printer?.keepsLines) waiting.stop()
    else breakLine()
  }

  async function print(text: string): Promise<void> {
    printer ??= markdown ? await createLayout(shown, waiting) : createAnswerPrinter(output)
    cleanups.add(breakLine)
    openLine.end = makeRoom
    printer.add(text)
    await printer.write()
  }

  /** Ends what is half-written, as `breakLine` does, and waits until it is written. */
  async function pause(): Promise<void> {
    const open = printer
    printer = undefined
    openLine.end = undefined
    await open?.end()
    waiting.stop()
    cleanups.delete(breakLine)
  }

  /** What was begun will not be finished, as far as the service tells. */
  async function close(): Promise<void> {
    await pause()
    const isBegun = [...drafts.values()].some(({ shown }) => shown > 0)
    drafts.clear()
    current = undefined
    if (isBegun) note('the message above came to nothing: the service sent no more of it')
  }

  return {
    add(piece) {
      const { start, delta } = readPiece(piece)
      if (start?.type === 'agent.message') begin(drafts, start.id)
      const draft = delta && drafts.get(delta.id)
      if (delta && draft) extend(draft, delta)
    },
    async show(isKnown) {
      for (const id of drafts.keys()) if (isKnown(id)) drafts.delete(id)
      if (current !== undefined && !drafts.has(current)) {
        await pause()
        current = undefined
      }
      current ??= [...drafts].find(([, { text, isBroken }]) => text !== '' && !isBroken)?.[0]
      const draft = current === undefined ? undefined : drafts.get(current)
      if (!draft || draft.shown === draft.text.length) return
      const fresh = draft.text.slice(draft.shown)
      draft.shown = draft.text.length
      await print(fresh)
    },
    async cut() {
      await pause()
      for (const draft of drafts.values()) draft.isBroken = true
    },
    async meet({ event }) {
      const { id } = event
      const draft = id === undefined ? undefined : drafts.get(id)
      if (id === undefined || !draft) {
        await (isEnd(event, drafts.size) ? close() : pause())
        return false
      }
      drafts.delete(id)
      if (current === id) current = undefined
      const text = readText(event)
      const seen = draft.text.slice(0, draft.shown)
      const isTrue = seen !== '' && text.startsWith(seen)
      if (isTrue && text.length > seen.length) await print(text.slice(seen.length))
      await pause()
      if (seen !== '' && !isTrue) note('the message is not what was shown of it; here it is whole')
      return isTrue
    },
    end: close,
  }
}

function begin(drafts: Map<string, Draft>, id: string): void {
  const draft = drafts.get(id)
  // It begins anew, as on another stream: nobody can say where what comes belongs.
  if (draft) draft.isBroken = true
  else if (drafts.size < mostDrafts) drafts.set(id, { text: '', shown: 0, block: 0, isBroken: false })
}

function extend(draft: Draft, { block, text }: { block: number; text: string }): void {
  if (block < draft.block || draft.text.length + text.length > longestDraft) draft.isBroken = true
  if (draft.isBroken) return
  draft.block = block
  draft.text += text
}

/** Whether no message is being made any more. The request of another thread says nothing about the one that is shown. */
const isEnd = (event: SessionEvent, drafts: number): boolean =>
  isStop(event) ||
  (event.type === 'span.model_request_end' && event.session_thread_id == null && drafts === 1)
