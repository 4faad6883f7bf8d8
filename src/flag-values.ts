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

/** A whole number of 1 or more, which steers parley itself. */
export function parseCount(value: string): number {
  if (!/^0*[1-9]\d*$/.test(value)) throw invalid('not a whole number of 1 or more')
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

/** A number that becomes a field: the JSON of it, spelled as it was given. */
export function parseNumberField(value: string): string {
  const json = value.replace(/^(-?)\./, '$10.').replace(/^(-?\d+)\.(?!\d)/, '$1')
  if (!isNumber.test(json)) throw invalid('not a number')
  return json
}

/** The same for a whole number. It may be of any length. */
export function parseIntegerField(value: string): string {
  if (!isInteger.test(value)) throw invalid('not a whole number, such as 0 or 800')
  return value
}

const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

const isInteger = /^(0|[1-9]\d*)$/

/** Completes `--flag: 'value' is …`. */
const invalid = (problem: string) => new InvalidArgumentError(problem)
