import { Argument, Option } from 'commander'

/** `updates` means that the run first reads the file and then writes it. */
export class FileFlag extends Option {
  readonly use: 'reads' | 'writes' | 'updates'

  constructor(flags: string, description: string, use: FileFlag['use'] = 'reads') {
    super(flags, description)
    this.use = use
  }
}

/** Rules by flag: a flag requires one of the flags in `needs`, and excludes the flags in `bars`. */
export type FlagCompanions = Record<string, { needs?: readonly string[]; bars?: readonly string[] }>

/** The value is a text or `@FILE`. In a value of the form `<id=text>`, the text follows the first `=`. */
export class TextFlag extends Option {}

/** A header contains a blank. Unlike other values with blanks, it may be attached: `-H'Name: value'`. */
export class HeaderFlag extends TextFlag {}

export class SettingArgument extends Argument {
  constructor() {
    super('<key>', "a setting: 'parley help settings' lists them")
  }
}

export class FileArgument extends Argument {}

export const createFailOnEmptyFlag = () => new Option('--fail-on-empty', 'exit 2 if stdin is empty')

/** `earlier` is false after the flag's `--no-` form. */
export const appendFlagValue = (value: string, earlier: string[] | false | undefined): string[] => [
  ...(earlier || []),
  value,
]

/** Parses an option of parley itself. Fields of the request use `toJsonInteger`. */
export function parseWholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new Error('not a whole number')
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

export function parsePositiveCount(value: string): number {
  if (!/^0*[1-9]\d*$/.test(value)) throw new Error('not a whole number of 1 or more')
  return parseWholeNumber(value)
}

/** Parses digits with at most one decimal point. Returns the source text. */
export function parseAmount(value: string): string {
  if (!/^\d{0,30}\.?\d{0,30}$/.test(value) || !/[1-9]/.test(value))
    throw new Error('not an amount such as 2.50')
  return value
}

export function toJsonNumber(value: string): string {
  const json = value.replace(/^(-?)\./, '$10.').replace(/^(-?\d+)\.(?!\d)/, '$1')
  if (!isNumber.test(json)) throw new Error('not a number')
  return json
}

/** Checks a whole number for the body of a request. The number may have any length. */
export function toJsonInteger(value: string): string {
  if (!isInteger.test(value)) throw new Error('not a whole number, such as 0 or 800')
  return value
}

const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

const isInteger = /^(0|[1-9]\d*)$/
