import type { Command } from 'commander'
import { addValue, FileFlag, failOnEmptyFlag, parseIntegerField, parseNumberField } from '../argv/flags.ts'

/** Declares the flags of every prompt; `aboutFile` says which files `-f` accepts. */
export function declarePromptFlags(command: Command, aboutFile: string): void {
  command
    .option('--temperature <n>', 'sampling temperature', parseNumberField)
    .option('--max-output-tokens <n>', 'longest answer, in tokens', parseIntegerField)
    .addOption(new FileFlag('-i, --input <file>', 'a whole request body, from a file or - for stdin'))
    .addOption(
      new FileFlag('-f, --file <file>', `${aboutFile}, or - for stdin, repeatable`).argParser(addValue),
    )
    .option('--set <path=value>', 'set any field of the body, repeatable', addValue)
    .addOption(failOnEmptyFlag())
}
