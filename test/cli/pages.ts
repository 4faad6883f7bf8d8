import { expect } from 'vitest'
import { commandEntries } from '../../src/cli/command-tree.ts'
import type { CommandEntry } from '../../src/commands/command.ts'
import { run } from '../harness/run.ts'

const commandsIn = (
  level: Record<string, CommandEntry>,
  before: string[] = [],
): { path: string[]; entry: CommandEntry }[] =>
  Object.entries(level).flatMap(([name, entry]) =>
    entry.group ? commandsIn(entry.group, [...before, name]) : [{ path: [...before, name], entry }],
  )

export const commands = commandsIn(commandEntries)
export const commandNames = commands.map(({ path }) => path.join(' '))
export const groupNames = Object.keys(commandEntries).filter((name) => commandEntries[name]?.group)

/** Returns the help of a topic or a command. If a topic and a group share a name, returns the topic. */
export const readHelp = (name: string): Promise<string> => print(['help', ...name.split(' ').filter(Boolean)])

export const readCommandHelp = (name: string): Promise<string> =>
  print([...name.split(' ').filter(Boolean), '--help'])

async function print(argv: string[]): Promise<string> {
  const ended = await run(argv)
  expect(ended).toMatchObject({ code: 0, err: '' })
  return ended.out
}

/** Returns the examples in the help of a command, or all commands in a topic. */
export const findExamples = (text: string) =>
  text.replace(/^.*\nExamples:/s, '').match(/(?<=^ {2})(?:\S.*)?\bparley .*$/gm) ?? []

interface Block {
  /** Heading above the block. Empty at the start of a topic. */
  heading: string
  /** Text without indentation. */
  text: string
}

/** Returns the indented blocks of a topic as help prints them. */
export async function readTopicBlocks(topic: string): Promise<Block[]> {
  const page = await readHelp(topic)
  let heading = ''
  const blocks: Block[] = []
  for (const part of page.split(/\n\n(?=\S)|\n\n(?= )/)) {
    const isHeading = /^[A-Z].{0,40}:$/.test(part)
    if (isHeading) heading = part.slice(0, -1)
    if (/^ {2}/.test(part)) blocks.push({ heading, text: `${part.replace(/^ {2}/gm, '').trimEnd()}\n` })
  }
  return blocks
}
