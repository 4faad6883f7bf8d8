import type { Argument, Option } from 'commander'
import { FileFlag } from '../argv/flags.ts'
import { exitCodes } from '../errors.ts'
import { getSettingDefinition, getSettingEnvVar, getSettingFlag, settingNames } from '../settings/table.ts'
import { isSharedFlag } from './flags.ts'
import type { ParleyCommand } from './parley-command.ts'
import { readExitCodeDescriptions } from './topic-texts.ts'
import { topics } from './topics.ts'

export function describeCommandForPrograms(command: ParleyCommand): object {
  const exits = readExitCodeDescriptions()
  const { entry, module, parent, registeredArguments, ownFlags, sharedFlags } = command
  return {
    format: 1,
    command: command.commandNames.join(' '),
    summary: entry.summary,
    arguments: registeredArguments.map(describeArgument),
    flags: [...ownFlags, ...sharedFlags].map((flag) => describeFlag(flag, command)),
    subcommands: command.commands.map((child) => ({ name: child.name(), summary: child.summary() })),
    ...(parent ? {} : { topics }),
    notes: module?.notes ?? [],
    examples: module?.examples ?? [],
    exitCodes: Object.entries(exitCodes).map(([kind, exit]) => ({ exit, kind, when: exits.get(kind) })),
  }
}

const describeArgument = (argument: Argument) => ({
  name: argument.name(),
  about: argument.description,
  required: argument.required,
  repeatable: argument.variadic,
  values: argument.argChoices ?? null,
})

function describeFlag(flag: Option, command: ParleyCommand) {
  const { long = '', short, description, argChoices } = flag
  const setting = settingNames.find((name) => {
    const { commandFlag = getSettingFlag(name), command: only } = getSettingDefinition(name)
    return [long, short].includes(commandFlag) && (only ?? command.name()) === command.name()
  })
  const [, variable] = /variable (PARLEY_\w+)/.exec(description) ?? []
  return {
    flag: long,
    short: short ?? null,
    about: description,
    type: getFlagType(flag),
    values: argChoices ?? null,
    default: flag.defaultValue ?? (setting && getSettingDefinition(setting).default) ?? null,
    repeatable: command.repeatableFlags.has(flag),
    setting: setting ?? null,
    environment: setting ? getSettingEnvVar(setting) : (variable ?? null),
    shared: isSharedFlag(flag),
  }
}

function getFlagType(flag: Option): 'none' | 'choice' | 'file' | 'number' | 'text' {
  if (!flag.required) return 'none'
  if (flag.argChoices) return 'choice'
  if (flag instanceof FileFlag) return 'file'
  return /<n>/.test(flag.flags) ? 'number' : 'text'
}
