import { Argument, Option } from 'commander'

export class FileFlag extends Option {
  readonly use: 'reads' | 'writes' | 'updates'

  constructor(flags: string, description: string, use: FileFlag['use'] = 'reads') {
    super(flags, description)
    this.use = use
    if (use === 'updates') this.argParser(requireFileName)
  }
}

/**
 * Refuses `-` and the name of a folder for a file that parley reads and writes. Users expect stdin or stdout,
 * but `-` would be a file with this name.
 */
function requireFileName(value: string): string {
  if (value === '-' || value.endsWith('/')) throw new Error('not the name of a file')
  return value
}

/**
 * Rules by flag. `requires`: one of these names must be given, too. `excludes`: none of these may be given. A
 * name is a flag, an argument such as `EVENTS`, or the command. `advice` ends the message about an exclusion.
 */
export type FlagRules = Record<
  string,
  { requires?: readonly string[]; excludes?: readonly string[]; advice?: string }
>

/** The value is a text or `@FILE`. In a flag `<id=text>`, the text follows the first `=`. */
export class TextFlag extends Option {}

/** An attached value may have a blank, unlike in other flags: users of curl write `-H'Name: value'`. */
export class HeaderFlag extends TextFlag {}

export class SettingArgument extends Argument {
  constructor() {
    super('<key>', "the name of a setting; 'parley help settings' lists the settings")
  }
}

export class FileArgument extends Argument {}

export const createFailOnEmptyFlag = () => new Option('--fail-on-empty', 'exit 2 if stdin is empty')

/** `earlier` is false after the `--no-` form of the flag. */
export const appendFlagValue = (value: string, earlier: string[] | false | undefined): string[] => [
  ...(earlier || []),
  value,
]

/** Parses an option of parley. Fields of a request use `toJsonInteger`, which keeps the source text. */
export function parseWholeNumber(value: string): number {
  if (!/^\d+$/.test(value)) throw new Error('not a whole number')
  return Math.min(Number(value), Number.MAX_SAFE_INTEGER)
}

export function parsePositiveCount(value: string): number {
  if (!/^0*[1-9]\d*$/.test(value)) throw new Error('not a whole number of 1 or more')
  return parseWholeNumber(value)
}

/** Accepts digits with at most one decimal point, because an amount of money has no sign or exponent. */
export function parseAmount(value: string): string {
  if (!/^\d{0,30}\.?\d{0,30}$/.test(value) || !/[1-9]/.test(value))
    throw new Error('not an amount such as 2.50')
  return value
}

export function toJsonNumber(value: string): string {
  const json = value.replace(/^(-?)\./, '$10.').replace(/^(-?\d+)\.(?!\d)/, '$1')
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(json)) throw new Error('not a number')
  return json
}

export function toJsonInteger(value: string): string {
  if (!/^(0|[1-9]\d*)$/.test(value)) throw new Error('not a whole number such as 0 or 800')
  return value
}
