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
  /** With `--raw` the command prints JSON lines, so it never prints the body of a failure. */
  printsLines?: boolean
  /** Commands that run as printed. */
  examples: readonly string[]
  /** Returns an exit code other than 0 if nothing failed, or work that is left. */
  run(
    context: Context,
    options: never,
    words: string[],
    grammar: CommandTree,
  ): Promise<number> | Promise<void> | Promise<CommandEnd>
}

/** Access to all commands, for commands such as help. */
export interface CommandTree {
  /** Prints the help of the command with these words. */
  showHelp(words: string[]): Promise<void>
  /** Describes one level of commands for programs. */
  describe(words: string[]): Promise<object>
  /** Returns a shell's completion script. */
  findScript(shell: string): Promise<string | undefined>
}

/** A command, or a group of commands. */
export interface CommandEntry {
  summary: string
  /**
   * Effect of its requests. Absent if the command sends none. A command with requests has the shared request
   * flags.
   */
  requests?: 'changes' | 'reads'
  /** Shared flags that do not apply. */
  without?: readonly string[]
  load?: (() => Promise<{ default: CommandModule }>) | undefined
  group?: Record<string, CommandEntry> | undefined
  /** Paragraphs at the end of a group's help. */
  notes?: readonly string[]
}
