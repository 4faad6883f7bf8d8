import type { Argument, Option } from 'commander'
import type { FlagCompanions } from '../argv/flags.ts'
import type { CommandEnd, Context } from '../context.ts'

export interface CommandModule {
  parameters?(): (Argument | Option)[]
  notes?: readonly string[]
  companions?: FlagCompanions
  /**
   * True if the command prints JSON lines with `--raw`. parley never prints the body of a failed response
   * between such lines.
   */
  printsLines?: boolean
  examples: readonly string[]
  /**
   * Runs the command. Returns nothing after a success. May return an exit code for a result that is not a
   * failure, or a `CommandEnd`.
   */
  run(
    context: Context,
    options: never,
    words: string[],
    grammar: CommandTree,
  ): Promise<number> | Promise<void> | Promise<CommandEnd>
}

export interface CommandTree {
  showHelp(words: string[]): Promise<void>
  describe(words: string[]): Promise<object>
  findScript(shell: string): Promise<string | undefined>
}

export interface CommandEntry {
  summary: string
  /**
   * Effect of the command's requests. Absent if the command sends no requests. A command with requests has
   * the shared request flags.
   */
  requests?: 'changes' | 'reads'
  without?: readonly string[]
  load?: (() => Promise<{ default: CommandModule }>) | undefined
  group?: Record<string, CommandEntry> | undefined
  notes?: readonly string[]
}
