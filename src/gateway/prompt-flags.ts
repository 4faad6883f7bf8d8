import { Option } from 'commander'
import {
  appendFlagValue,
  createFailOnEmptyFlag,
  FileFlag,
  toJsonInteger,
  toJsonNumber,
} from '../argv/flags.ts'

export const createPromptFlags = (aboutFile: string, temperatureNote = ''): Option[] => [
  new Option('--temperature <n>', `sampling temperature${temperatureNote}`).argParser(toJsonNumber),
  new Option('--max-output-tokens <n>', 'maximum length of the answer, in tokens').argParser(toJsonInteger),
  new FileFlag('-i, --input <file>', 'a whole request body, from a file or - for stdin'),
  new FileFlag('-f, --file <file>', `${aboutFile}, or - for stdin, repeatable`).argParser(appendFlagValue),
  new Option('--set <path=value>', 'set any field of the body, repeatable').argParser(appendFlagValue),
  createFailOnEmptyFlag(),
]
