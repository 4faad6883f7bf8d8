import type { Argument, Option } from 'commander'
import type { FlagCompanions } from '../argv/flags.ts'
import type { CommandEnd, Context } from '../context.ts'

/** Exports of a command's module. */
export interface CommandModule {
  /** Arguments and flags. */
  parameters?(): (Argument | Option)[]
  /** Paragraphs at the end of the help. */
  notes?: readonly string[]
  companions?: FlagCompanions
  /**
   * With `--raw` the command prints JSON lines. parley never prints the body of a failed response between
   * them.
   */
  printsLines?: boolean
  /** Complete command lines for the help. */
  examples: readonly string[]
  /**
   * Returns nothing after a success. May return an exit code for a result that is not a failure, or a
   * `CommandEnd`.
   */
  run(
    context: Context,
    options: never,
    words: string[],
    grammar: CommandTree,
  ): Promise<number> | Promise<void> | Promise<CommandEnd>
}

/** Information about all commands, for the commands `help` and `completion`. */
export interface CommandTree {
  /** Prints the help of the command with these words. */
  showHelp(words: string[]): Promise<void>
  /** Returns the JSON of `help --json` for the command with these words. */
  describe(words: string[]): Promise<object>
  /** Returns a shell's completion script. */
  findScript(shell: string): Promise<string | undefined>
}

/** A command, or a group of commands. */
export interface CommandEntry {
  summary: string
  /**
   * Whether the command's requests change data of a service. Absent if the command sends no requests. A
   * command with requests has the shared request flags.
   */
  requests?: 'changes' | 'reads'
  /** Shared flags that this command rejects. */
  without?: readonly string[]
  load?: (() => Promise<{ default: CommandModule }>) | undefined
  group?: Record<string, CommandEntry> | undefined
  /** Paragraphs at the end of a group's help. */
  notes?: readonly string[]
}
