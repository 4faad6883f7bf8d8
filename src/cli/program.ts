import { CommanderError } from 'commander'
import type { Host } from '../context.ts'
import { usage } from '../errors.ts'
import { say } from '../io/output.ts'
import { addCommands, type Parse } from './command-group.ts'
import { entries } from './command-tree.ts'
import { explain } from './commander-errors.ts'
import type { Entry } from './entry.ts'
import { isFlag } from './flags.ts'
import { fold } from './help-text.ts'
import type { ParleyCommand } from './parley-command.ts'
import { createRoot } from './root-command.ts'

/**
 * Parses the arguments and runs the command that they name. Returns the exit code; throws a `CliError` of kind
 * `usage` for arguments that are wrong.
 */
export async function runProgram(
  argv: string[],
  host: Host,
  { run, version, report }: Pick<Parse, 'run' | 'report'> & { version: string },
): Promise<number> {
  let help = ''
  const print = (text: string) => {
    help += text
  }
  const root = createRoot(print, host, version)
  const parse: Parse = {
    argv,
    host,
    run,
    report,
    exitCode: 0,
    unknown: undefined,
    showHelp: (words) => showHelp(root, parse, words),
    findScript: async (shell) => (await import('./completion/scripts.ts')).findScript(shell),
  }
  addCommands(root, entries, parse)
  await parseArguments(root, argv)
  if (parse.unknown) {
    const { describeUnknown } = await import('./pointers.ts')
    throw usage(describeUnknown(parse.unknown))
  }
  if (help) await say(host.stdout, fold(help, host.stdout.columns))
  return parse.exitCode
}

async function parseArguments(root: ParleyCommand, argv: string[]): Promise<void> {
  try {
    await root.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.code === 'commander.help' && argv.some(isFlag)) throw usage(noCommand(argv))
    if (error.exitCode !== 0 && error.code !== 'commander.help') throw usage(explain(error))
  }
}

/** Prints the help of the command that the words name. */
async function showHelp(root: ParleyCommand, parse: Parse, words: string[]): Promise<void> {
  let level: Record<string, Entry> | undefined = entries
  for (const [index, word] of words.entries()) {
    if (!level || !Object.hasOwn(level, word)) {
      parse.unknown = { words: words.slice(0, index + 1), isHelp: true }
      return
    }
    level = level[word]?.group
  }
  await root.parseAsync([...words, '--help'], { from: 'user' })
}

/** `-v` alone is what people type for a version. */
const noCommand = (argv: string[]): string =>
  argv.includes('-v')
    ? "no command was given: did you mean -V, the version, or 'parley COMMAND -v'?"
    : "no command was given: 'parley --help' lists them"
