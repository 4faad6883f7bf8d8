import { Argument, InvalidArgumentError, Option } from 'commander'

/** A flag with the name of a file. `use` is what a run does with the file; a file that it keeps is read, then written. */
export class FileFlag extends Option {
  readonly use: 'reads' | 'writes' | 'keeps'

  constructor(flags: string, description: string, use: FileFlag['use'] = 'reads') {
    super(flags, description)
    this.use = use
  }
}

/** By flags that do nothing alone, or beside others: one of `needs` has to be there, and none of `bars`. */
export type Companions = Record<string, { needs?: readonly string[]; bars?: readonly string[] }>

/** A flag whose value is a text, or `@FILE`; after the first `=`, if its form is `<id=text>`. */
export class TextFlag extends Option {}

/** A flag with a header line: it may be a secret, and it has blanks. */
export class HeaderFlag extends TextFlag {}

/** An argument that is the name of a setting, in any of its spellings. */
export class SettingArgument extends Argument {
  constructor() {
    super('<key>', "a setting: 'parley help settings' lists them")
  }
}

/** An argument that is a file which is read, or `-`. */
export class FileArgument extends Argument {}

/** For commands that add a pipe's text to what was given otherwise. */
export const failOnEmptyFlag = () => new Option('--fail-on-empty', 'exit 2 if stdin is empty')

/** For a flag that can be repeated. What was there is false after its `--no-` form. */
export const addValue = (value: string, earlier: string[] | false | undefined): string[] => [
  ...(earlier || []),
  value,
]

/** A whole number that steers parley itself. */
export function parseWhole(value: string): number {
  if (!/^\d+$/.test(value)) throw invalid('not a whole number')
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

/** The same, of 1 or more. */
export function parseCount(value: string): number {
  if (!/^0*[1-9]\d*$/.test(value)) throw invalid('not a whole number of 1 or more')
  return parseWhole(value)
}

/** An amount of money that is more than nothing: digits with at most one point, as they were given. */
export function parseAmount(value: string): string {
  if (!/^\d{0,30}\.?\d{0,30}$/.test(value) || !/[1-9]/.test(value))
    throw invalid('not an amount such as 2.50')
  return value
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
