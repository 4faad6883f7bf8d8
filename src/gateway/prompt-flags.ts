import { Option } from 'commander'
import { appendValue, FileFlag, failOnEmptyFlag, parseIntegerField, parseNumberField } from '../argv/flags.ts'

/** Returns the flags that all prompts have. */
export const promptFlags = (aboutFile: string, aboutTemperature = 'sampling temperature'): Option[] => [
  new Option('--temperature <n>', aboutTemperature).argParser(parseNumberField),
  new Option('--max-output-tokens <n>', 'longest answer, in tokens').argParser(parseIntegerField),
  new FileFlag('-i, --input <file>', 'a whole request body, from a file or - for stdin'),
  new FileFlag('-f, --file <file>', `${aboutFile}, or - for stdin, repeatable`).argParser(appendValue),
  new Option('--set <path=value>', 'set any field of the body, repeatable').argParser(appendValue),
  failOnEmptyFlag(),
]
