import { Argument, InvalidArgumentError, Option } from 'commander'

/**
 * A flag whose value is a file name. `updates` means that the run first reads the file and then writes it.
 */
export class FileFlag extends Option {
  readonly use: 'reads' | 'writes' | 'updates'

  constructor(flags: string, description: string, use: FileFlag['use'] = 'reads') {
    super(flags, description)
    this.use = use
  }
}

/**
 * Rules for combining flags, by flag. The flag requires one of the flags in `needs`, and excludes the flags
 * in `bars`.
 */
export type FlagCompanions = Record<string, { needs?: readonly string[]; bars?: readonly string[] }>

/**
 * A flag whose value is a text or `@FILE`. In a value of the form `<id=text>`, the text follows the first
 * `=`.
 */
export class TextFlag extends Option {}

/** A flag whose value is a header line. The header may be a secret and contains blanks. */
export class HeaderFlag extends TextFlag {}

/** An argument that names a setting, in any of its spellings. */
export class SettingArgument extends Argument {
  constructor() {
    super('<key>', "a setting: 'parley help settings' lists them")
  }
}

/** An argument that names a file to read, or is `-`. */
export class FileArgument extends Argument {}

/** Flag of the commands that add a pipe's text to other input. */
export const createFailOnEmptyFlag = () => new Option('--fail-on-empty', 'exit 2 if stdin is empty')

/** Collects the values of a repeatable flag. `earlier` is false after the flag's `--no-` form. */
export const appendValue = (value: string, earlier: string[] | false | undefined): string[] => [
  ...(earlier || []),
  value,
]

/** Parses a whole number that parley itself uses. Fields of the request use `toJsonInteger`. */
export function parseWholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw invalid('not a whole number')
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

/** Parses a whole number of at least 1. */
export function parsePositiveCount(value: string): number {
  if (!/^0*[1-9]\d*$/.test(value)) throw invalid('not a whole number of 1 or more')
  return parseWholeNumber(value)
}

/** Parses a positive amount of money: digits with at most one decimal point. Returns the source text. */
export function parseAmount(value: string): string {
  if (!/^\d{0,30}\.?\d{0,30}$/.test(value) || !/[1-9]/.test(value))
    throw invalid('not an amount such as 2.50')
  return value
}

/** Converts a number on the command line to JSON source text, for a field of the body. */
export function toJsonNumber(value: string): string {
  const json = value.replace(/^(-?)\./, '$10.').replace(/^(-?\d+)\.(?!\d)/, '$1')
  if (!isNumber.test(json)) throw invalid('not a number')
  return json
}

/** Converts a whole number of any length to JSON source text, for a field of the body. */
export function toJsonInteger(value: string): string {
  if (!isInteger.test(value)) throw invalid('not a whole number, such as 0 or 800')
  return value
}

const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

const isInteger = /^(0|[1-9]\d*)$/

/** `problem` completes the sentence `--flag: 'value' is …`. */
const invalid = (problem: string) => new InvalidArgumentError(problem)
