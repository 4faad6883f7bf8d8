import type { Argument, Option } from 'commander'
import type { FlagCompanions } from '../argv/flags.ts'
import type { Context } from '../context.ts'

/** What a command's module exports. */
export interface CommandModule {
  /** Its arguments and flags. */
  parameters?(): (Argument | Option)[]
  /** Paragraphs of its help. */
  notes?: readonly string[]
  companions?: FlagCompanions
  /** With `--raw` it prints lines of JSON, and no failure's body among them. */
  printsLines?: boolean
  /** Commands that run as printed. */
  examples: readonly string[]
  /** Returns an exit code if that is not 0 and nothing failed. */
  run(context: Context, options: never, words: string[], grammar: Grammar): Promise<number> | Promise<void>
}

/** What a command can do with all commands. */
export interface Grammar {
  /** Prints the help of the command that the words name. */
  showHelp(words: string[]): Promise<void>
  /** One level of the commands, for programs. */
  describe(words: string[]): Promise<object>
  /** A shell's completion script. */
  findScript(shell: string): Promise<string | undefined>
}

/** A command, or a group of commands. */
export interface Entry {
  summary: string
  /** What its requests do; absent if it sends none. One that sends some has the shared flags for requests. */
  requests?: 'changes' | 'reads'
  /** Those of them that do not apply to it. */
  without?: readonly string[]
  load?: (() => Promise<{ default: CommandModule }>) | undefined
  group?: Record<string, Entry> | undefined
  /** Of a group: paragraphs of its help. */
  notes?: readonly string[]
}
