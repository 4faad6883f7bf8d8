import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Argument, Option } from 'commander'
import { FileArgument, FileFlag, SettingArgument, TextFlag } from '../../argv/flags.ts'
import type { CommandEntry } from '../../commands/command.ts'
import { quoteShellWord } from '../../io/shell-quote.ts'
import { getSettingDefinition, settingNames } from '../../settings/table.ts'
import { documentedModels } from '../../wire/gateway/models.ts'
import { documentedBetas } from '../../wire/sessions/betas.ts'
import { createGeneralFlags, createRequestFlags, createSettingFlags } from '../flags.ts'
import { loadAllCommands } from '../loaded-commands.ts'
import type { ParleyCommand } from '../parley-command.ts'
import { topics } from '../topics.ts'

/**
 * A word that TAB offers, with its description. The key describes the position of the word:
 *
 * - `events,`: a subcommand of `events`
 * - `events list,-`: a flag of `events list`
 * - `events list,--type`: a value of the flag `--type`
 * - `sessions show,0`: the first argument of `sessions show`
 *
 * A word in angle brackets is a reference. The shell finds the words for `<files>`, `<texts>` (`@FILE`)
 * and `<profiles>`. Any other `<key>` stands for all words of that key.
 */
type Row = [key: string, word: string, about?: string]

const shells = ['bash', 'zsh', 'fish']

/**
 * Returns `undefined` for an unknown shell. The build renders the scripts, and replaces this function by a
 * function that reads them.
 */
export async function findCompletionScript(
  shell: string,
  loadRoot: () => Promise<CommandEntry>,
): Promise<string | undefined> {
  if (!shells.includes(shell)) return undefined
  const script = readFileSync(join(import.meta.dirname, `functions.${shell}`), 'utf8')
  const rows = listRows(await loadAllCommands(await loadRoot())).map((row) => quoteShellWord(row.join('\t')))
  return script.replace('ROWS', () => rows.join(' \\\n'))
}

function listRows(commands: ParleyCommand[]): Row[] {
  const groups = commands.flatMap(({ entry, commandNames }) => (entry.group ? [commandNames.join(' ')] : []))
  return [
    ...createGeneralFlags().flatMap((flag) => listFlagRows(flag, 'general', '')),
    ...[...createRequestFlags(), ...createSettingFlags()].flatMap((flag) =>
      listFlagRows(flag, 'request', ''),
    ),
    ['request', '<general>'],
    ...documentedBetas.map((beta): Row => ['betas', beta]),
    ...settingNames.map((name): Row => ['settings', name, getSettingDefinition(name).about]),
    ...commands.flatMap(listCommandRows),
    ...groups.map((path): Row => [`${path},0`, `<${path},>`]),
    // `parley help` takes a topic or a command.
    ...topics.map((topic): Row => ['help,', topic, 'a topic']),
    ['help,', '<,>'],
    ['help,0', '<help,>'],
    ...groups.map((path): Row => [`help ${path},0`, `<${path},>`]),
  ]
}

function listCommandRows({
  entry,
  commandNames,
  commands,
  ownFlags,
  registeredArguments,
}: ParleyCommand): Row[] {
  const path = commandNames.join(' ')
  return [
    ...commands.map((child): Row => [`${path},`, child.name(), child.summary()]),
    [`${path},-`, entry.requests || entry.group ? '<request>' : '<general>'],
    ...ownFlags.flatMap((flag) => listFlagRows(flag, `${path},-`, path)),
    ...registeredArguments.flatMap((argument, index) =>
      listArgumentValues(argument, path).map((word): Row => [`${path},${index}`, word]),
    ),
  ]
}

/** Adds `=` to a flag that takes a value. For shared flags, `path` is empty. */
function listFlagRows(flag: Option, key: string, path: string): Row[] {
  const names = [flag.short, flag.long].flatMap((name) => name ?? [])
  return names.flatMap((name) => [
    [key, `${name}${flag.required ? '=' : ''}`, flag.description],
    ...listFlagValues(flag, path).map((word): Row => [`${path},${name}`, word]),
  ])
}

/**
 * Values that TAB suggests, although other values are valid. The key is a flag, or the name of a command with
 * its flag or argument.
 */
export const completionValues = new Map<string, readonly string[]>([
  ['--profile', ['<profiles>']],
  ['config use name', ['<profiles>']],
  ['config delete name', ['<profiles>']],
  ['chat --model', documentedModels],
  ['--beta', ['<betas>']],
  ['--betas', ['<betas>']],
])

function listFlagValues(flag: Option, path: string): readonly string[] {
  const { long = '', flags, argChoices, required } = flag
  if (!required) return []
  const given = argChoices ?? completionValues.get(`${path} ${long}`) ?? completionValues.get(long)
  if (given) return given
  if (flag instanceof FileFlag) return ['<files>']
  return flag instanceof TextFlag && !flags.includes('=') ? ['<texts>'] : []
}

function listArgumentValues(argument: Argument, path: string): readonly string[] {
  if (argument instanceof SettingArgument) return ['<settings>']
  if (argument instanceof FileArgument) return ['<files>']
  return argument.argChoices ?? completionValues.get(`${path} ${argument.name()}`) ?? []
}
