import type { Argument, Option } from 'commander'
import { entries } from './command-tree.ts'
import type { Entry } from './entry.ts'
import { declareGeneralFlags, declareRequestFlags, isShared } from './flags.ts'
import { ParleyCommand } from './parley-command.ts'

/** A command, or a group of commands; the first of all is parley itself. */
export interface Outline {
  /** The words after `parley`. */
  words: string[]
  summary: string
  /** What comes after the words. */
  usage: string
  /** The commands of a group, by name. */
  children: Record<string, Entry>
  arguments: readonly Argument[]
  flags: Option[]
  /** Flags that other commands have, too. */
  shared: Option[]
  notes: readonly string[]
  examples: readonly string[]
}

/** Everything that the command tree says, for what is written once for all commands. */
export async function readOutlines(): Promise<Outline[]> {
  const root = new ParleyCommand().option('-V, --version', 'print the version')
  return outlinesOf({ summary: '', group: entries }, [], root)
}

async function outlinesOf(entry: Entry, words: string[], command = new ParleyCommand()): Promise<Outline[]> {
  const module = await entry.load?.()
  module?.declare?.(command)
  command.option('-h, --help', 'print this help')
  if (sendsRequests(entry)) declareRequestFlags(command)
  else declareGeneralFlags(command)
  const { summary, group: children = {} } = entry
  const own: Outline = {
    words,
    summary,
    usage: command.usage().replace('[options]', '[flags]'),
    children,
    arguments: command.registeredArguments,
    flags: command.options.filter((option) => !isShared(option)),
    shared: command.options.filter(isShared),
    notes: module?.notes ?? [],
    examples: module?.examples ?? [],
  }
  const inner = Object.entries(children).map(([name, child]) => outlinesOf(child, [...words, name]))
  return [own, ...(await Promise.all(inner)).flat()]
}

/** A group has the flags of its commands, to be given before their names. */
const sendsRequests = ({ isRequest, group = {} }: Entry): boolean =>
  isRequest ?? Object.values(group).some(sendsRequests)
