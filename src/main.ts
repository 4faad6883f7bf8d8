import { version } from '../package.json'
import type { Host, Run } from './context.ts'
import { CliError, OutputClosed } from './errors.ts'
import { say } from './io/output.ts'
import { createSecrets, type Secrets } from './secrets.ts'

export { createProcessHost } from './host.ts'

/** Runs parley: arguments and the outside world in, an exit code out. Every failure ends here. */
export async function main(argv: string[], host: Host): Promise<number> {
  const cleanups = new Set<() => void>()
  const secrets = createSecrets()
  let describe: () => string | undefined = () => undefined
  const run: Run = {
    cleanups,
    secrets,
    whenInterrupted(next) {
      describe = next
    },
  }
  host.onSignal?.(() => {
    cleanUp(cleanups)
    const state = describe()
    return `parley: interrupted${state === undefined ? '' : `: ${state}`}\n`
  })
  host.onCrash?.((error) => fail(unexpected(error, describe())))
  try {
    const text = await findText(argv)
    if (text !== undefined) {
      await say(host.stdout, text)
      return 0
    }
    host.checkArguments?.(argv)
    const { runProgram } = await import('./cli/program.ts')
    return await runProgram(argv, host, { run, version })
  } catch (error) {
    if (error instanceof OutputClosed) return 0
    return await fail(error instanceof CliError ? error : unexpected(error, describe()))
  } finally {
    cleanUp(cleanups)
  }

  async function fail(failure: CliError): Promise<number> {
    cleanUp(cleanups)
    await report(failure, argv, host, secrets)
    return failure.exitCode
  }
}

/** What is always the same is printed at once: loading the command tree would take longer than all the rest. */
async function findText(argv: string[]): Promise<string | undefined> {
  const [command = '', shell = ''] = argv
  if (argv.length === 1 && /^(-V|--version)$/.test(command)) return `${version}\n`
  if (argv.length !== 2 || command !== 'completion') return undefined
  const { findScript } = await import('./cli/completion/scripts.ts')
  return findScript(shell)
}

function cleanUp(cleanups: Set<() => void>): void {
  for (const clean of cleanups) {
    cleanups.delete(clean)
    try {
      clean()
    } catch {
      // A cleanup that fails does not stop the others.
    }
  }
}

/** A bug. Its message may quote anything, so only its kind and its place in the program are shown. */
function unexpected(error: unknown, state: string | undefined): CliError {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error('no error')
  const frames = stack.slice(stack.indexOf(message) + message.length)
  const place = /^\s+at .*?([^\s()/\\]+:\d+:\d+)\)?$/m.exec(frames)?.[1] ?? 'an unknown place'
  return new CliError('unexpected', `a bug in parley ${version}: ${name} at ${place}`, {
    sent: 'unknown',
    consequence: `${state ? `${state}; ` : ''}please report this line, with the command but without its secrets`,
  })
}

/** Prints a failure. Its flags are read from the bare arguments, because they apply also where those are wrong. */
async function report(failure: CliError, argv: string[], host: Host, secrets: Secrets): Promise<void> {
  const [{ renderFailure, renderFailureAsJson }, { createStyle, toColourChoice, wantsColour }] =
    await Promise.all([import('./io/failure.ts'), import('./io/style.ts')])
  const words = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv
  const isJson = flagValue(words, '--errors') === 'json'
  const choice = toColourChoice(flagValue(words, '--color'))
  const isColoured = wantsColour(choice, host.env, host.stderr.isTerminal)
  const shown = secrets.redactFailure(failure)
  const text = isJson ? renderFailureAsJson(shown) : renderFailure(shown, await createStyle(isColoured))
  // A stderr that is gone changes nothing about the exit code.
  await say(host.stderr, secrets.redact(text)).catch(() => {})
}

/** The value of a flag, as its own word or attached; the last one counts. */
function flagValue(words: string[], flag: string): string | undefined {
  const index = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`))
  return words[index] === flag ? words[index + 1] : words[index]?.slice(flag.length + 1)
}
