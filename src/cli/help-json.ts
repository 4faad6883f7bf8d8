import type { Argument, Option } from 'commander'
import { FileFlag } from '../argv/flags.ts'
import { outcomes, usage } from '../errors.ts'
import { flagOf, settingNames, settingOf, variableOf } from '../settings/table.ts'
import { isShared } from './flags.ts'
import { type Outline, readOutlines } from './outline.ts'
import { describeUnknown } from './pointers.ts'
import { topics } from './topics.ts'

/** One level of the commands, for programs. Throws a usage error if the words name no command. */
export async function describeCommand(words: readonly string[]): Promise<object> {
  const outlines = await readOutlines()
  const outline = outlines.find((each) => each.words.join(' ') === words.join(' '))
  if (!outline) {
    const known = words.findIndex((_, at) => !outlines.some((each) => isAt(each, words.slice(0, at + 1))))
    throw usage(describeUnknown({ words: words.slice(0, known + 1), rest: [], isHelp: true }))
  }
  const { summary, flags, shared, notes, examples, children } = outline
  return {
    format: 1,
    command: words.join(' '),
    summary: summary || 'one command for a model gateway and an agent session service',
    arguments: outline.arguments.map(describeArgument),
    flags: [...flags, ...shared].map(describeFlag),
    subcommands: Object.entries(children).map(([name, child]) => ({ name, summary: child.summary })),
    ...(words.length === 0 ? { topics } : {}),
    notes,
    examples,
    exitCodes: Object.entries(outcomes).map(([kind, { exit, when }]) => ({ exit, kind, when })),
  }
}

const isAt = ({ words }: Outline, wanted: readonly string[]) => words.join(' ') === wanted.join(' ')

const describeArgument = (argument: Argument) => ({
  name: argument.name(),
  about: argument.description,
  required: argument.required,
  repeatable: argument.variadic,
  values: argument.argChoices ?? null,
})

function describeFlag(flag: Option) {
  const { long = '', short, description, argChoices, parseArg } = flag
  const setting = settingNames.find((name) => {
    const { ownFlag } = settingOf(name)
    return flagOf(name) === long || ownFlag === long || (ownFlag !== undefined && ownFlag === short)
  })
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
  if (!flag.required && !flag.optional) return 'none'
  if (flag.argChoices) return 'choice'
  if (flag instanceof FileFlag) return 'file'
  return /<n>/.test(flag.flags) ? 'number' : 'text'
}
