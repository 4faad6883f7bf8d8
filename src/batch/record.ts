import type { Spent } from '../content/tokens.ts'
import { asStop, CliError, OutputClosed } from '../errors.ts'
import { onOneLine } from '../wire/page.ts'
import type { Line, LineRequest } from './input.ts'

/** How far a batch has come. */
export interface Tally {
  ok: number
  failed: number
  /** What came for these was not printed, so that they are neither. */
  lost?: number
  /** Done by an earlier run. */
  skipped: number
  /** Of all answers that say it, an earlier run's too. */
  tokens: number
  /** Those of them that an earlier run's answers took. */
  earlierTokens: number
  /** Some answers do not say what they took, of an earlier run or of this one. */
  isPartial?: boolean
}

/** What the answers of earlier runs took. */
export type EarlierTokens = Pick<Tally, 'tokens' | 'isPartial'>

/** The answer to one line. */
export interface LineAnswer {
  /** One of these; `json` and `response` are JSON texts, shown as they are spelled. */
  content:
    | { text: string }
    | { files: string[]; links?: string[]; text?: string }
    | { json: string }
    | { response: string }
  model?: string
  stopReason?: string
  seconds: number
}

/** A line's result as it is written, without its line break. */
export interface Result {
  text: string
  outcome: 'ok' | 'failed'
}

/** The places that results go to. */
export interface Sinks {
  /** Throws as stdout does; `flush` resolves when everything is written. */
  output: { write(text: string): Promise<void>; flush(): Promise<void> }
  /** Decides when a result goes to the output, if there are no `results`. */
  turns: Turns<Result>
  /** Takes each result as it comes, in place of the output. Throws a `CliError` if it cannot. */
  results?: {
    append(line: string): void
    requireWhole?(): void
  }
  /** A failure as it stands in a result, secrets redacted. */
  describe(error: CliError): object
  note(message: string): void
  /** Called after each result, of the line with this number. */
  onProgress?(tally: Tally, index: number): void
}

export interface LineFailure {
  index: number
  error: CliError
}

/** Writes a result for each line, and keeps the sums. */
export interface Recorder {
  readonly tally: Tally
  /** Of the failed line with the lowest number. */
  readonly failure: LineFailure | undefined
  /** One of the failed lines may be asked again. */
  readonly mayPass: boolean
  /** One more result could wait for its turn, and stdout has taken all that it was given. */
  readonly hasRoom: boolean
  /** A line is begun: its result has its turn after those begun before. */
  begin(line: Line<LineRequest>): void
  /** Counts the tokens of a line, after each of its requests. */
  addSpent(line: Line<LineRequest>): void
  addAnswer(line: Line<LineRequest>, answer: LineAnswer): void
  addFailure(line: Line<LineRequest>, error: CliError): void
  /** Resolves when stdout has taken all that it was given. */
  printed(): Promise<void>
  /** Gives out the results that wait for their turn. Resolves when all are written. */
  end(): Promise<void>
}

/** `onError` is called if a result cannot be written; the others still go wherever they can. */
export function createRecorder(
  sinks: Sinks,
  {
    earlier,
    countSkipped,
    onError,
  }: { earlier: EarlierTokens; countSkipped(): number; onError(error: unknown): void },
): Recorder {
  const { turns, output, results, describe, note, onProgress } = sinks
  const { tokens, isPartial } = earlier
  const tally: Tally = { ok: 0, failed: 0, skipped: countSkipped(), tokens, earlierTokens: tokens, isPartial }
  let mayPass = false
  let first: LineFailure | undefined
  let isUnmeteredTold = false
  let unprinted = 0
  let printing = Promise.resolve()

  /** What was counted and is not printed does not count. */
  function print({ text, outcome }: Result, isCounted = true): void {
    unprinted++
    printing = printing
      .then(() => output.write(`${text}\n`))
      .catch((error: unknown) => {
        if (isCounted) tally[outcome]--
        tally.lost = (tally.lost ?? 0) + 1
        failToPrint(error)
      })
      .then(() => void unprinted--)
  }

  const failToPrint = (error: unknown) => {
    const failure = error instanceof OutputClosed ? readerGone() : asStop(error)
    onError(failure instanceof CliError ? failure.with({ consequence: notPrinted }) : failure)
  }

  function record(line: Line<LineRequest>, result: Result): void {
    if (keep(line, result)) tally[result.outcome]++
    tally.skipped = countSkipped()
    onProgress?.(tally, line.index)
  }

  /** Returns whether the result is, or will be, where the next run or a reader looks for it. */
  function keep(line: Line<LineRequest>, result: Result): boolean {
    if (!results) {
      for (const ready of turns.finish(line.place ?? 0, result)) print(ready)
      return true
    }
    try {
      results.append(result.text)
      return true
    } catch (error) {
      onError(error instanceof CliError ? error.with({ consequence: onStdout }) : error)
      // It was paid for.
      print(result, false)
      return false
    }
  }

  return {
    tally,
    get failure() {
      return first
    },
    get mayPass() {
      return mayPass
    },
    get hasRoom() {
      return unprinted === 0 && (results !== undefined || turns.haveRoom)
    },
    begin(line) {
      line.place = turns.open()
    },
    addSpent(line) {
      const { tokens, unmetered } = line.spent
      tally.tokens += tokens - (line.counted ?? 0)
      line.counted = tokens
      if (unmetered === 0 || isUnmeteredTold) return
      isUnmeteredTold = true
      tally.isPartial = true
      note(`line ${line.index}: the answer does not say how many tokens it took; it counts as none`)
    },
    addAnswer(line, answer) {
      record(line, { outcome: 'ok', text: formatAnswer(line, answer) })
    },
    addFailure(line, error) {
      if (!first || line.index < first.index) first = { index: line.index, error }
      mayPass ||= error.details.retry === 'later'
      record(line, { outcome: 'failed', text: formatFailure(line, describe(error)) })
    },
    printed: () => printing,
    async end() {
      tally.skipped = countSkipped()
      for (const result of turns.takeHeld()) print(result)
      await printing.then(() => output.flush()).catch(failToPrint)
      try {
        results?.requireWhole?.()
      } catch (error) {
        onError(error)
      }
    },
  }
}

const onStdout = 'the results that it did not take are on stdout, and do not count'

const notPrinted = 'the results that it did not take are lost, and do not count'

const readerGone = () => new CliError('file', 'stdout: its reader has gone')

/** Puts results that come in any order into the order in which their lines were begun. */
export interface Turns<R = string> {
  /** Another line may be begun. */
  readonly haveRoom: boolean
  /** A line is begun. Returns its place. */
  open(): number
  /** A line's result is there. Returns the results whose turn it is now. */
  finish(place: number, result: R): R[]
  /** The results that wait for one before them. They are given out by this. */
  takeHeld(): R[]
}

/** Fewer than `size` results wait at any time. */
export function inOrder<R = string>(size: number): Turns<R> {
  /** Each at its place, modulo the size. */
  const held: (R | undefined)[] = []
  let opened = 0
  let next = 0
  return {
    get haveRoom() {
      return opened - next < size
    },
    open: () => opened++,
    finish(place, result) {
      held[place % size] = result
      const ready: R[] = []
      for (let first = held[next % size]; first !== undefined; first = held[next % size]) {
        held[next++ % size] = undefined
        ready.push(first)
      }
      return ready
    },
    takeHeld() {
      const inTurn = [...held.splice(next % size), ...held.splice(0)]
      return inTurn.filter((result) => result !== undefined)
    },
  }
}

/** Gives each result out at once. */
export const asTheyCome = <R = string>(): Turns<R> => ({
  haveRoom: true,
  open: () => 0,
  finish: (_, result) => [result],
  takeHeld: () => [],
})

/** The line that a result belongs to. */
type Subject = Pick<Line<LineRequest>, 'index' | 'id' | 'hash' | 'spent'>

/** A result as one line of JSON, without its line break. */
export function formatAnswer(subject: Subject, answer: LineAnswer): string {
  const { content, model, stopReason, seconds } = answer
  const { attempts, answers } = subject.spent
  const usage = usageOf(subject.spent)
  // The response itself says its usage, unless there were several.
  const rest =
    'response' in content
      ? { usage: answers > 1 ? usage : undefined, attempts, seconds }
      : { model, stopReason, usage, attempts, seconds }
  return `${formatSubject(subject)},"ok":true,${formatContent(content)},${JSON.stringify(rest).slice(1)}`
}

/** The same for a line that failed; `error` is the failure as `--errors json` has it. */
export const formatFailure = (subject: Subject, error: object): string =>
  `${formatSubject(subject)},"ok":false,${JSON.stringify({ error, usage: usageOf(subject.spent) }).slice(1)}`

/** The sums of all answers, so that a later run knows the cost. */
const usageOf = ({ usage }: Spent) => (Object.keys(usage).length > 0 ? usage : undefined)

const formatSubject = ({ index, id, hash }: Subject): string =>
  JSON.stringify({ index, id, hash }).slice(0, -1)

function formatContent(content: LineAnswer['content']): string {
  if ('json' in content) return `"json":${onOneLine(content.json).trim()}`
  if ('response' in content) return `"response":${onOneLine(content.response).trim()}`
  return JSON.stringify(content).slice(1, -1)
}
