import { version } from '../package.json'
import { findFlagValue } from './argv/bare-flags.ts'
import { ArraySet } from './array-set.ts'
import type { Host, StdStream } from './basic-context.ts'
import type { CommandResult, RunContext } from './context.ts'
import { Deadline } from './deadline.ts'
import { CliError, OutputClosedError, toFailure } from './errors.ts'
import {
  formatFailureMessage,
  renderFailure,
  renderFailureAsJson,
  renderGithubAnnotation,
} from './io/failure.ts'
import { writeTextToStdout } from './io/output.ts'
import { createStyle } from './io/style.ts'
import { createLineWrapper } from './io/wrapping.ts'
import { RunReport } from './report.ts'
import { ReportData } from './report-data.ts'
import { Secrets } from './secrets.ts'
import { WorkTracker } from './work-tracker.ts'

export { createProcessHost } from './host.ts'

const finalWriteGraceMs = 1000

/** Returns the exit code. Never throws. */
export async function main(argv: string[], outer: Host): Promise<number> {
  const isJson = findFlagValue(argv, '--errors') === 'json'
  const isForGithub = findFlagValue(argv, '--errors') === 'github'
  const { host, guard } = isForGithub ? await withGuard(outer) : { host: outer, guard: String }
  const cleanups = new ArraySet<() => unknown>()
  const secrets = new Secrets()
  // A usage error may quote a flag that contains a secret of the environment. So parley adds these secrets
  // before it parses the arguments.
  for (const name of ['PARLEY_ACCESS_TOKEN', 'PARLEY_API_KEY']) secrets.add(host.env[name] ?? '')
  const reportData = new ReportData(host.timers.now())
  const tracker = new WorkTracker()
  const report = new RunReport({ host, reportData, tracker, secrets })
  let ending: Promise<number> | undefined
  let ended: CliError | undefined
  let wrap: (message: string) => string = String
  const deadline = new Deadline(host.timers)
  const run: RunContext = { deadline, cleanups, secrets, reportData, tracker }
  host.onSignal?.((exit) => {
    // The cleanup removes temporary files, so the received data is saved first.
    const { consequence, savedFiles } = tracker.interrupt()
    // The terminal has printed ^C into the current line, so the message starts a new line.
    const isInLine = !cleanUp(cleanups) && exit === 130 && host.stderr.isTerminal
    // A resume command comes last, where a person can copy it.
    const describe = (...states: (string | undefined)[]) =>
      ['interrupted', ...states.filter((state) => state !== undefined)].join(': ')
    const { sent, retry, mayDuplicate } = tracker
    const resumeArguments = tracker.getResumeCommand()
    const known = { sent, retry, mayDuplicate, savedFiles, resumeArguments, ...getRunFacts() }
    // If the run has failed already, its data is saved, and only its failure has the names of the files.
    const state = ended ? formatFailureMessage(ended) : consequence
    const failure = (ended ?? new CliError('stopped', '', known)).with({}, describe(state))
    const problem = catchMessage(() => report.writeSync({ exit, failure, isSignal: true }))
    const words = secrets.redact(describe(problem, state))
    if (isJson) return renderFailureAsJson(secrets.redactFailure(failure.with({}, words)), exit)
    const text = guard(`${isInLine ? '\n' : ''}${wrap(`parley: ${words}`)}\n`)
    if (!isForGithub) return text
    return text + renderGithubAnnotation(new CliError('stopped', words), getCommandName(), exit)
  })
  const stopExitCheck = host.reportBugs?.(saveAndFail)
  try {
    const text = await findStaticText(argv)
    if (text !== undefined) {
      await writeTextToStdout(host.stdout, text)
      return 0
    }
    // A signal handler cannot wait for an import, so the wrapper is created now.
    wrap = await createLineWrapper(host.stderr)
    host.checkArguments?.(argv)
    report.readFlags(argv)
    const { runProgram } = await import('./cli/program.ts')
    const program = runProgram(argv, host, { run, report })
    const { failure, lastStep } = await program.catch((error: unknown): CommandResult => {
      if (error instanceof OutputClosedError) return {}
      throw error
    })
    if (failure) return await fail(failure, lastStep)
    await report.write({ exit: 0 })
    lastStep?.()
    return ending ?? 0
  } catch (error) {
    if (error instanceof OutputClosedError) return 0
    return await saveAndFail(error)
  } finally {
    cleanUp(cleanups)
    stopExitCheck?.()
    host.exitAfter?.(getWriteDeadline() - host.timers.now())
  }

  function getRunFacts(): CliError['details'] {
    return { attempts: reportData.attempts || undefined, session: reportData.session }
  }

  function getCommandName(): string {
    return `parley ${reportData.command ?? ''}`.trimEnd()
  }

  function getWriteDeadline(): number {
    return Math.max(deadline.atMs, host.timers.now() + finalWriteGraceMs)
  }

  async function saveAndFail(error: unknown): Promise<number> {
    if (ending) return ending
    const { consequence, savedFiles } = tracker.interrupt()
    const failure = toFailure(error, consequence)
    return fail(failure.with({ savedFiles: [...(failure.details.savedFiles ?? []), ...savedFiles] }))
  }

  /** The cleanup may cause another error, so only the first failure is reported. */
  function fail(failure: CliError, lastStep?: () => void): Promise<number> {
    ending ??= end(failure, lastStep)
    return ending
  }

  async function end(thrown: CliError, lastStep = () => {}): Promise<number> {
    const failure = tracker.addRequestState(thrown).with(getRunFacts())
    ended = failure
    const { exitCode } = failure
    const unwritten = await report.write({ exit: exitCode, failure }).then(() => undefined, getMessage)
    const problem = unwritten ?? catchMessage(lastStep)
    cleanUp(cleanups)
    const whole = problem === undefined ? failure : failure.with({}, `${failure.message}; ${problem}`)
    const until = new Deadline(host.timers, getWriteDeadline())
    // A closed stderr does not change the exit code.
    const print = (stderr: StdStream, text: string) => writeTextToStdout(stderr, text, until).catch(() => {})
    const shown = secrets.redactFailure(whole)
    // Reads `--color` from the raw arguments, because it also applies to the message about invalid arguments.
    const style = await createStyle(findFlagValue(argv, '--color'), host.env, host.stderr.isTerminal)
    const text = isJson ? renderFailureAsJson(shown) : secrets.redact(renderFailure(shown, style, wrap))
    await print(host.stderr, text)
    const annotation = () => secrets.redact(renderGithubAnnotation(shown, getCommandName()))
    if (isForGithub) await print(outer.stderr, annotation())
    return exitCode
  }
}

function catchMessage(work: () => void): string | undefined {
  try {
    work()
  } catch (error) {
    return getMessage(error)
  }
  return undefined
}

const getMessage = (error: unknown) => (error as Error).message

/** `--version` and `completion` need no command tree, and loading it would take most of their time. */
async function findStaticText(argv: string[]): Promise<string | undefined> {
  const [command = '', shell = ''] = argv
  if (argv.length === 1 && /^(-V|--version)$/.test(command)) return `${version}\n`
  if (argv.length !== 2 || command !== 'completion') return undefined
  const { findCompletionScript } = await import('./cli/completion/scripts.ts')
  return findCompletionScript(shell, async () => (await import('./cli/command-tree.ts')).rootCommandEntry)
}

function cleanUp(cleanups: ArraySet<() => unknown>): boolean {
  let isAtStart = false
  for (const clean of cleanups) {
    try {
      if (clean() === true) isAtStart = true
    } catch {
      // The other cleanups still run.
    }
    cleanups.delete(clean)
  }
  return isAtStart
}

async function withGuard(host: Host) {
  const { createCiSafeStream, disableCiCommands } = await import('./io/ci-commands.ts')
  const stderr = { value: createCiSafeStream(host.stderr) }
  const printAnnotation = { value: (line: string) => void host.stderr.open().write(line) }
  // `{ ...host }` would call the getter `cwd`, which throws if the current folder has been removed.
  const guarded: Host = Object.create(host, { stderr, printAnnotation })
  return { host: guarded, guard: (text: string) => disableCiCommands(text) }
}
