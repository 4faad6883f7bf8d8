import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CommandLine, readCommandLine } from './command-line.ts'
import { writeFishTables } from './fish.ts'
import { writeBashTables, writeZshTables } from './tables.ts'

const writers: Record<string, (commandLine: CommandLine, functions: string) => string> = {
  bash: (commandLine, functions) =>
    `# Completion of parley's words, for bash 4.2 or later.\n\n${writeBashTables(commandLine)}\n${functions}`,
  // The first line tells zsh what a file in its folder is for.
  zsh: (commandLine, functions) => `#compdef parley\n\n${writeZshTables(commandLine)}\n${functions}`,
  fish: (commandLine, functions) =>
    `# Completion of parley's words, for fish 3.4 or later.\n\n${functions}${writeFishTables(commandLine)}`,
}

/** A shell's completion script. The build puts the finished scripts in the place of this module. */
export async function findScript(shell: string): Promise<string | undefined> {
  if (!Object.hasOwn(writers, shell)) return undefined
  const functions = readFileSync(join(import.meta.dirname, `functions.${shell}`), 'utf8')
  return writers[shell]?.(await readCommandLine(), functions)
}
