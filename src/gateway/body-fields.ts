import { Option } from 'commander'
import {
  appendFlagValue,
  createFailOnEmptyFlag,
  FileFlag,
  toJsonInteger,
  toJsonNumber,
} from '../argv/flags.ts'

/** `parse` converts the flag's value to JSON source text. */
interface BodyField {
  flag: string
  about: string
  path: string[]
  parse(value: string): string
}

export const bodyFields = {
  temperature: {
    flag: '--temperature <n>',
    about: 'sampling temperature',
    path: ['generationConfig', 'temperature'],
    parse: toJsonNumber,
  },
  maxOutputTokens: {
    flag: '--max-output-tokens <n>',
    about: 'maximum length of the answer, in tokens',
    path: ['generationConfig', 'maxOutputTokens'],
    parse: toJsonInteger,
  },
} as const satisfies Record<string, BodyField>

type BodyFieldName = keyof typeof bodyFields

export type BodyFieldValues = { [Name in BodyFieldName]?: string }

const bodyFieldFlags = (notes: BodyFieldValues = {}): Option[] =>
  (Object.keys(bodyFields) as BodyFieldName[]).map((name) => {
    const { flag, about, parse } = bodyFields[name]
    return new Option(flag, [about, notes[name]].filter(Boolean).join(' ')).argParser(parse)
  })

export const createPromptFlags = (aboutFile: string, notes?: BodyFieldValues): Option[] => [
  ...bodyFieldFlags(notes),
  new FileFlag('-i, --input <file>', 'a whole request body, from a file or - for stdin'),
  new FileFlag('-f, --file <file>', `${aboutFile}, or - for stdin, repeatable`).argParser(appendFlagValue),
  new Option('--set <path=value>', 'set any field of the body, repeatable').argParser(appendFlagValue),
  createFailOnEmptyFlag(),
]
