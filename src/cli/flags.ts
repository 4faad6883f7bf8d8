import { type Command, Option } from 'commander'
import { appendFlagValue, FileFlag, type FlagRules, HeaderFlag } from '../argv/flags.ts'
import type { CommandLineFlag, SharedFlags } from '../basic-context.ts'
import { usageError } from '../errors.ts'
import {
  getSettingDefinition,
  getSettingFlag,
  hasRequestFlag,
  type SettingName,
  settingNames,
} from '../settings/table.ts'

export interface GivenFlag extends CommandLineFlag {
  option: Option
}

export const createGeneralFlags = () => [
  new Option('--profile <name>', 'the profile to use; the built-in profile demo needs no credentials'),
  new Option('-q, --quiet', 'print only errors and warnings on stderr'),
  new Option(
    '--errors <form>',
    'json: print each failure as a JSON line on stderr; github: also print GitHub Actions annotations',
  ).choices(['json', 'github']),
  new Option('--color <when>', 'auto, always or never').choices(['auto', 'always', 'never']),
  new Option('--no-pager', 'print long help without a pager'),
]

export const createRequestFlags = () => [
  new Option('--raw', "print the service's exact JSON"),
  new Option('--dry-run', 'send nothing; print the request as JSON'),
  new Option('--curl', 'send nothing; print the request as a curl command'),
  new HeaderFlag(
    '-H, --header <line>',
    "set a header: 'NAME: VALUE', 'NAME: @FILE' or @FILE; 'NAME:' removes it; repeatable",
  ).argParser(appendFlagValue),
  new Option('--retry-unknown', 'chat, image, api: also retry a request that was sent but not answered'),
  new Option('--no-stdin', 'never read stdin'),
  new FileFlag('--report <file>', 'write a JSON report of the run, even if it fails', 'writes'),
  new Option('-v, --verbose', 'show request and response headers, timings and retries on stderr'),
]

export const createSettingFlags = () => settingNames.filter(hasRequestFlag).map(settingFlag)

export const declareGeneralFlags = (command: Command) => declareShared(command, createGeneralFlags())

export const declareRequestFlags = (command: Command) =>
  declareShared(command, [...createRequestFlags(), ...createGeneralFlags(), ...createSettingFlags()])

export const isHelpFlag = (word: string): boolean => word === '--help' || word === '-h'

export const isFlagExceptHelp = (word: string): boolean => word.startsWith('-') && !isHelpFlag(word)

const sharedHeading = 'Shared flags:'

export const isSharedFlag = (option: Option): boolean => option.helpGroupHeading === sharedHeading

function declareShared(command: Command, options: Option[]): void {
  for (const option of options) command.addOption(option.helpGroup(sharedHeading))
}

function settingFlag(name: SettingName): Option {
  const { about, type, default: value } = getSettingDefinition(name)
  const isToggle = typeof value === 'boolean'
  const shown = value === undefined || isToggle ? about : `${about} (default ${value})`
  if (name === 'cacert') return new FileFlag(`${getSettingFlag(name)} <file>`, shown)
  const option = new Option(isToggle ? getSettingFlag(name) : `${getSettingFlag(name)} <value>`, shown)
  return typeof type === 'string' ? option : option.choices(type)
}

/**
 * Merges the shared flags before and after the name of the command. If a flag is repeated, uses its last
 * value. `commands` starts with the root and ends with the called command. Throws a usage error for a flag
 * that does not apply to the called command.
 */
export function readSharedFlags(commands: (Command & { given: GivenFlag[] })[]): SharedFlags {
  const called = commands.at(-1) as Command
  const given: Record<string, unknown> = {}
  for (const command of commands) {
    for (const { option, flag } of command.given) {
      if (!called.options.some(({ long }) => long === flag))
        throw usageError(`${flag} does not apply to '${called.name()}'`)
      given[option.attributeName()] = command.getOptionValue(option.attributeName())
    }
  }
  const flags = given as Partial<SharedFlags>
  if (flags.profile === '')
    throw usageError('--profile: the name of a profile is empty: is a variable unset?')
  // With `--batch FILE`, `--fail-on-empty` refuses a file without lines, so `--no-stdin` does not
  // contradict it.
  if (flags.failOnEmpty && flags.stdin === false && called.opts().batch === undefined)
    throw usageError('--no-stdin and --fail-on-empty exclude each other')
  return {
    ...flags,
    given: commands.flatMap((command) => command.given),
    header: commands.flatMap((command) => command.opts<SharedFlags>().header ?? []),
    quiet: Boolean(flags.quiet || flags.errors === 'json'),
    settings: Object.fromEntries(
      settingNames
        .filter((name) => hasRequestFlag(name) && given[name] !== undefined)
        .map((name) => [name, given[name]]),
    ),
  }
}

export const sharedFlagRules: FlagRules = {
  '--raw': { excludes: ['--ids', 'config check'] },
  '--dry-run': { excludes: ['--curl', 'config check'] },
  '--curl': { excludes: ['config check'] },
  '--beta': { excludes: ['--no-beta'] },
  '--retry-unknown': { requires: ['chat', 'image', 'api'] },
}

/** `given`: the names of the flags and arguments on the command line, and of the command. */
export function checkFlagRules(given: readonly string[], rules: FlagRules): void {
  for (const name of given) {
    const { requires = given, excludes = [], advice } = rules[name] ?? {}
    if (!requires.some((each) => given.includes(each)))
      throw usageError(`${name} works only with ${requires.join(' or ')}`)
    const other = excludes.find((each) => given.includes(each))
    if (other !== undefined)
      throw usageError(`${name} and ${other} exclude each other${advice === undefined ? '' : `: ${advice}`}`)
  }
}
