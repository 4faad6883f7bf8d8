import { version } from '../package.json'
import { ActiveSet } from './active-set.ts'
import { findFlagValue } from './argv/bare-flags.ts'
import type { Host, RunContext } from './context.ts'
import { Calls } from './delivery-state.ts'
import { CliError, describeBug, describeFileError, hasCode, OutputClosed } from './errors.ts'
import { escapeJson, oneLine } from './io/escape.ts'
import { type StdStream, writeText } from './io/output.ts'
import { Report } from './report.ts'
import { Secrets } from './secrets.ts'
import { Summary } from './summary.ts'

export { createProcessHost } from './host.ts'

/** How long the last of what a run writes may take after its deadline. Milliseconds. */
const finalWriteGraceMs = 1000

/** Runs parley: arguments and the outside world in, an exit code out. Every failure ends here. */
export async function main(argv: string[], outer: Host): Promise<number> {
  const isJson = findFlagValue(argv, '--errors') === 'json'
  const isForGithub = findFlagValue(argv, '--errors') === 'github'
  const { host, guard } = isForGithub ? await withGuard(outer) : { host: outer, guard: String }
  const cleanups = new ActiveSet<() => unknown>()
  const secrets = new Secrets()
  const summary = new Summary()
  const calls = new Calls()
  const start = host.timers.now()
  const report = new Report(argv, { host, summary, calls, secrets, start })
  let ending: Promise<number> | undefined
  const limit = { deadline: Infinity }
  const run: RunContext = { start, limit, cleanups, lastSteps: [], secrets, summary, calls }
  host.onSignal?.((exit) => {
    // The terminal has shown the ^C that was typed.
    const isInLine = !cleanUp(cleanups) && exit === 130 && host.stderr.isTerminal
    // The command to be copied comes last.
    const states = [catchMessage(() => report.writeSync({ exit, isSignal: true })), calls.lastWords()]
    const words = ['interrupted', ...states.filter((state) => state !== undefined)].join(': ')
    if (isJson) return describeSignal(exit, words)
    return guard(`${isInLine ? '\n' : ''}parley: ${words}\n`)
  })
  host.onCrash?.((error) => fail(unexpectedFailure(error, calls.lastWords())))
  const hasEnded = host.detectEarlyExit?.(() => void fail(earlyExitFailure(calls.lastWords())))
  try {
    const text = await findStaticText(argv)
    if (text !== undefined) {
      await writeText(host.stdout, text)
      return 0
    }
    checkArguments(argv, host, report)
    const { runProgram } = await import('./cli/program.ts')
    const exit = await runProgram(argv, host, { run, version, report }).catch((error: unknown) => {
      if (error instanceof OutputClosed) return 0
      throw error
    })
    await report.write({ exit }).catch((error: unknown) => {
      run.lastSteps = []
      throw error
    })
    takeLastSteps()
    return ending ?? exit
  } catch (error) {
    if (error instanceof OutputClosed) return 0
    return await fail(error instanceof CliError ? error : unexpectedFailure(error, calls.lastWords()))
  } finally {
    cleanUp(cleanups)
    hasEnded?.()
    host.exitAfter?.(getWriteDeadline() - host.timers.now())
  }

  function takeLastSteps(): void {
    for (const step of run.lastSteps.splice(0)) step()
  }

  /** By the forward clock: what nobody takes by then is given up. Infinity without a deadline. */
  function getWriteDeadline(): number {
    return Math.max(limit.deadline, host.timers.now() + finalWriteGraceMs)
  }

  /** A signal for programs, in the form of a failure. */
  function describeSignal(exit: number, words: string): string {
    const { sent, retry } = calls
    const fate = { sent, safeToRetry: retry === 'later', retry, resume: summary.resume?.() }
    const error = { format: 1, kind: 'signal', exit, message: oneLine(words, 2000), ...fate }
    return `${escapeJson(JSON.stringify(secrets.redactValue({ error })))}\n`
  }

  /** What a failure's cleaning up makes fail is not a failure of its own. */
  function fail(failure: CliError): Promise<number> {
    ending ??= end(failure)
    return ending
  }

  async function end(thrown: CliError): Promise<number> {
    // What failed may be no call, but the printing of what several calls brought.
    const failure = thrown.with({ sent: thrown.details.sent ?? calls.sent })
    const { exitCode } = failure
    const unwritten = await report.write({ exit: exitCode, failure }).then(() => undefined, getMessage)
    const problem = unwritten ?? catchMessage(takeLastSteps)
    cleanUp(cleanups)
    const whole = problem === undefined ? failure : failure.with({}, `${failure.message}; ${problem}`)
    const until = { limit: { deadline: getWriteDeadline() }, timers: host.timers }
    // A stderr that is gone changes nothing about the exit code.
    const print = (stderr: StdStream, text: string) => writeText(stderr, text, until).catch(() => {})
    const shown = secrets.redactFailure(whole)
    const { renderAnnotation, renderFailureAsJson } = await import('./io/failure.ts')
    const text = isJson
      ? renderFailureAsJson(shown)
      : secrets.redact(await renderForPerson(shown, argv, host))
    await print(host.stderr, text)
    const command = `parley ${summary.command ?? ''}`.trimEnd()
    if (isForGithub) await print(outer.stderr, secrets.redact(renderAnnotation(shown, command)))
    return exitCode
  }
}

/** The message of what a piece of work throws. */
function catchMessage(work: () => void): string | undefined {
  try {
    work()
  } catch (error) {
    return getMessage(error)
  }
  return undefined
}

const getMessage = (error: unknown) => (error as Error).message

/** The name of a report may be what is wrong about the arguments, so none is written then. */
function checkArguments(argv: string[], host: Host, report: Report): void {
  try {
    host.checkArguments?.(argv)
  } catch (error) {
    report.disable()
    throw error
  }
}

/** A text that is always the same is printed at once: loading the command tree would take longer than all the rest. */
async function findStaticText(argv: string[]): Promise<string | undefined> {
  const [command = '', shell = ''] = argv
  if (argv.length === 1 && /^(-V|--version)$/.test(command)) return `${version}\n`
  if (argv.length !== 2 || command !== 'completion') return undefined
  const { findScript } = await import('./cli/completion/scripts.ts')
  return findScript(shell)
}

/** Returns whether the cursor is at the beginning of a line. */
function cleanUp(cleanups: ActiveSet<() => unknown>): boolean {
  let isAtStart = false
  for (const clean of cleanups) {
    cleanups.delete(clean)
    try {
      if (clean() === true) isAtStart = true
    } catch {
      // A cleanup that fails does not stop the others.
    }
  }
  return isAtStart
}

/**
 * A bug, or the system's refusal to open one more file, which may meet any of them. A bug's message may quote anything,
 * so only its kind and its place in the program are shown.
 */
function unexpectedFailure(error: unknown, state: string | undefined): CliError {
  if (error instanceof Error && hasCode(error, 'EMFILE', 'ENFILE'))
    return new CliError('file', describeFileError(error), { sent: 'unknown', consequence: state })
  return new CliError('unexpected', `a bug in parley ${version}: ${describeBug(error)}`, {
    sent: 'unknown',
    // A state may end with a command to be copied.
    consequence: `please report this line, with the command but without its secrets${state ? `; ${state}` : ''}`,
  })
}

/** A bug: something was waited for that nothing was left to bring. */
const earlyExitFailure = (state: string | undefined) =>
  new CliError('unexpected', 'a bug in parley: it ended before its work', {
    sent: 'unknown',
    consequence: state,
  })

/** A failure as text. Its flags are read from the bare arguments, because they apply even if those are wrong. */
async function renderForPerson(failure: CliError, argv: string[], host: Host): Promise<string> {
  const [{ renderFailure }, { createStyle }, { createLineWrapper }] = await Promise.all([
    import('./io/failure.ts'),
    import('./io/style.ts'),
    import('./io/wrapping.ts'),
  ])
  const style = await createStyle(findFlagValue(argv, '--color'), host.env, host.stderr.isTerminal)
  return renderFailure(failure, style, await createLineWrapper(host.stderr))
}

/** Nothing that a run says is a command to the runner that reads it. */
async function withGuard(host: Host) {
  const { guardStreamFromRunner, guardTextFromRunner } = await import('./io/runner-guard.ts')
  const stderr = { value: guardStreamFromRunner(host.stderr), enumerable: true }
  // A spread would ask for the current folder, which may be gone.
  const guarded = Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(host), stderr }) as Host
  return { host: guarded, guard: (text: string) => guardTextFromRunner(text) }
}
