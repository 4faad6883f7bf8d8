import { Argument, InvalidArgumentError, Option } from 'commander'

/** A flag with the name of a file to read. The shell may turn `-f *.md` into more words than the flag's one value. */
export class FileFlag extends Option {}

/** A flag with a header line: it may be a secret, and it has blanks. */
export class HeaderFlag extends Option {}

/** An argument that is the name of a setting, in any of its spellings. */
export class SettingArgument extends Argument {
  constructor() {
    super('<key>', "a setting: 'parley help settings' lists them")
  }
}

/** For a flag that can be repeated. */
export const addValue = (value: string, earlier: string[] | undefined): string[] => [
  ...(earlier ?? []),
  value,
]

/** A whole number of 1 or more. */
export function parseCount(value: string): number {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw invalid('not a whole number of 1 or more')
  return Number(value)
}

export function parseNumber(value: string): number {
  if (!/^-?(\d+\.?\d*|\.\d+)$/.test(value)) throw invalid('not a number')
  return Number(value)
}

/** Completes `--flag: 'value' is …`. */
const invalid = (problem: string) => new InvalidArgumentError(problem)
