import type { Argument, Option } from 'commander'
import { FileFlag } from '../argv/flags.ts'
import { exitCodes } from '../errors.ts'
import { flagOf, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { isShared } from './flags.ts'
import { loadCommands } from './loaded-commands.ts'
import { type ParleyCommand, Unknown } from './parley-command.ts'
import { readExits } from './topic-texts.ts'
import { topics } from './topics.ts'

/** One level of the commands, for programs. */
export async function describeCommand(words: readonly string[]): Promise<object> {
  const [root] = (await loadCommands()) as [ParleyCommand]
  const command = words.reduce((group, word) => {
    const named = group.commands.find((child) => child.name() === word)
    if (!named) throw new Unknown(group, [word])
    return named as ParleyCommand
  }, root)
  const exits = readExits()
  const { entry, module, registeredArguments, ownFlags, sharedFlags } = command
  return {
    format: 1,
    command: words.join(' '),
    summary: entry.summary,
    arguments: registeredArguments.map(describeArgument),
    flags: [...ownFlags, ...sharedFlags].map(describeFlag),
    subcommands: command.commands.map((child) => ({ name: child.name(), summary: child.summary() })),
    ...(words.length === 0 ? { topics } : {}),
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

function describeFlag(flag: Option) {
  const { long = '', short, description, argChoices, parseArg } = flag
  const setting = settingNames.find((name) => [long, short].includes(settingOf(name).ownFlag ?? flagOf(name)))
  const [, variable] = /environment (\w+)/.exec(description) ?? []
  return {
    flag: long,
    short: short ?? null,
    about: description,
    type: typeOf(flag),
    values: argChoices ?? null,
    default: flag.defaultValue ?? (setting && settingOf(setting).default) ?? null,
    // What collects values is given those of before as well.
    repeatable: (parseArg?.length ?? 0) > 1,
    setting: setting ?? null,
    environment: setting ? variableOf(setting) : (variable ?? null),
    shared: isShared(flag),
  }
}

/** `none` is a flag without a value. */
function typeOf(flag: Option): 'none' | 'choice' | 'file' | 'number' | 'text' {
  if (!flag.required) return 'none'
  if (flag.argChoices) return 'choice'
  if (flag instanceof FileFlag) return 'file'
  return /<n>/.test(flag.flags) ? 'number' : 'text'
}
