import type { Argument, Option } from 'commander'
import type { FlagRules } from '../argv/flags.ts'
import type { CommandResult, Context } from '../context.ts'

export interface CommandModule {
  parameters?(): (Argument | Option)[]
  notes?: readonly string[]
  flagRules?: FlagRules
  /**
   * With `--raw`, the command prints JSON lines. parley then never prints the body of a failed response,
   * because a reader would take it for a line.
   */
  printsLines?: boolean
  examples: readonly string[]
  run(context: Context, options: never, words: string[]): Promise<void> | Promise<CommandResult>
}

export interface CommandEntry {
  summary: string
  /** Omitted if the command sends no requests. Any other command has the request flags. */
  requests?: 'changes' | 'reads'
  load?: (() => Promise<{ default: CommandModule }>) | undefined
  group?: Record<string, CommandEntry> | undefined
  notes?: readonly string[]
}
