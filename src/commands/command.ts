import type { Argument, Option } from 'commander'
import type { FlagRules } from '../argv/flags.ts'
import type { CommandResult, Context } from '../context.ts'

export interface CommandModule {
  parameters?(): (Argument | Option)[]
  notes?: readonly string[]
  flagRules?: FlagRules
  /**
   * True if stdout gets the body of a failed response even without `--raw`. False if it never does, because a
   * reader would take the body for one of the command's lines.
   */
  printsFailedBody?: boolean
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
