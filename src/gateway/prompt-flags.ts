import { Option } from 'commander'
import { appendValue, createFailOnEmptyFlag, FileFlag } from '../argv/flags.ts'
import { type BodyFieldValues, bodyFieldFlags } from './body-fields.ts'

/** Returns the flags that all prompts have. */
export const promptFlags = (aboutFile: string, notes?: BodyFieldValues): Option[] => [
  ...bodyFieldFlags(notes),
  new FileFlag('-i, --input <file>', 'a whole request body, from a file or - for stdin'),
  new FileFlag('-f, --file <file>', `${aboutFile}, or - for stdin, repeatable`).argParser(appendValue),
  new Option('--set <path=value>', 'set any field of the body, repeatable').argParser(appendValue),
  createFailOnEmptyFlag(),
]
