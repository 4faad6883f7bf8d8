import type { Command } from 'commander'
import type { Context } from '../context.ts'

/** What a command's module gives. */
interface CommandModule {
  /** Its arguments and flags. */
  declare?(command: Command): void
  /** Paragraphs of its help. */
  notes?: readonly string[] | undefined
  /** Commands that run as printed. */
  examples: readonly string[]
  /** A number is an exit code that is no failure. */
  run(context: Context, options: never, words: string[], grammar: Grammar): Promise<number> | Promise<void>
}

/** What a command may ask of the commands. */
export interface Grammar {
  /** Prints the help of the command that the words name. Throws a usage error where they name none. */
  showHelp(words: string[]): Promise<void>
}

/** A command, or a group of commands. */
export interface Entry {
  summary: string
  /** Makes requests, and so has the flags that every request command has. */
  isRequest?: true | undefined
  /** Its requests do something; those of others only read. */
  sends?: true | undefined
  load?: (() => Promise<CommandModule>) | undefined
  group?: Record<string, Entry> | undefined
}
