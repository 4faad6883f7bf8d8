import { Help, type Option } from 'commander'
import { flagOf, settingNames } from '../settings/table.ts'
import { loadCommands } from './loaded-commands.ts'
import type { ParleyCommand } from './parley-command.ts'
import { readTopic } from './topic-texts.ts'
import { topics } from './topics.ts'

/** Everything that help says, as a page of the manual. */
export async function renderManPage(version: string): Promise<string> {
  const [root, ...others] = (await loadCommands()) as [ParleyCommand]
  const commands = others.filter(({ module }) => module)
  const settings = root.sharedFlags.filter(({ long }) => settingNames.some((name) => flagOf(name) === long))
  return `${[
    `.TH PARLEY 1 "" "parley ${version}" "User Commands"`,
    // Neither broken words nor wide gaps, which commands and flags in the text would make.
    '.nh\n.ad l',
    section('name', 'parley \\- one command for a model gateway and an agent session service'),
    section('synopsis', '.B parley', escapeRoff('<command> [flags]')),
    section('description', prose(beginning)),
    section('flags', definitions(root.ownFlags.map(flagRow))),
    section('commands', ...commands.map(describeCommand)),
    section('flags for settings', definitions(settings.map(flagRow))),
    ...topics.map((name) =>
      section(
        name.replace('exit-codes', 'exit status').replace('-', ' '),
        ...readTopic(name).map((part) => (typeof part === 'string' ? prose(part) : definitions(part))),
      ),
    ),
  ].join('\n')}\n`
}

const beginning = `Try it, without an account or a network:

  parley chat --profile demo 'Say hello'

Then 'parley config init' asks for your own addresses and credentials. Flags of every command may come before its name.`

const help = new Help()

const flagRow = (flag: Option): Definition => [flag.flags, help.optionDescription(flag)]

function describeCommand(command: ParleyCommand): string {
  const { words, module, registeredArguments, ownFlags } = command
  return subsection(
    `parley ${[...words, command.usage()].join(' ')}`,
    prose(command.description()),
    ...(module?.notes ?? []).map(prose),
    definitions(registeredArguments.map((each) => [each.name(), help.argumentDescription(each)])),
    definitions(ownFlags.filter(({ long }) => long !== '--help').map(flagRow)),
    '.PP\nExamples:',
    literal(module?.examples ?? []),
  )
}

/** What roff would take for its own, or print as another character. */
const escapes: Record<string, string> = {
  '\\': '\\(rs',
  '-': '\\-',
  "'": '\\(aq',
  '"': '\\(dq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
}

const codePoint = (char: string) => char.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')

/** A text that roff prints as it is, at the start of a line and in the argument of a macro too. */
const escapeRoff = (text: string): string =>
  text
    .replace(/[\\\-'"`^~]/g, (char) => escapes[char] ?? char)
    .replace(/[^\x00-\x7f]/gu, (char) => `\\[u${codePoint(char)}]`)
    .replace(/^\./gm, '\\&.')

/** A heading, and what is under it. */
export const section = (title: string, ...parts: string[]): string =>
  under(`.SH "${escapeRoff(title.toUpperCase())}"`, parts)

const subsection = (title: string, ...parts: string[]): string => under(`.SS "${escapeRoff(title)}"`, parts)

/** A heading begins a paragraph already. */
const under = (heading: string, parts: string[]) =>
  [heading, ...parts.filter((part) => part !== '')].join('\n').replace('\n.PP\n', '\n')

type Definition = [term: string, about: string]

const definitions = (rows: Definition[]): string =>
  rows.map(([term, about]) => `.TP\n\\fB${escapeRoff(term)}\\fR\n${escapeRoff(about)}`).join('\n')

/** Where a paragraph's lines begin, on a screen of 80 columns. */
const [margin, width] = [7, 80]

/** Lines that are printed as they are, such as commands: to the right of the text, if there is room. */
export function literal(lines: readonly string[]): string {
  const indent = Math.min(4, width - margin - Math.max(...lines.map((line) => line.length)))
  return `.RS ${indent}\n.nf\n${lines.map(escapeRoff).join('\n')}\n.fi\n.RE`
}

/** Paragraphs, between them indented lines that are printed as they are, and headings (`## `). */
export function prose(text: string): string {
  const blocks = text.match(/(^[^\S\n].*\n?)+|(^\S.*\n?)+/gm) ?? []
  return blocks.map((block) => writeBlock(block.trimEnd().split('\n'))).join('\n')
}

function writeBlock(lines: string[]): string {
  const indent = Math.min(...lines.map((line) => line.search(/\S/)))
  if (indent > 0) return literal(lines.map((line) => line.slice(indent)))
  const [heading = ''] = lines
  if (heading.startsWith('## ')) return subsection(heading.slice(3))
  return ['.PP', ...lines.map(escapeRoff)].join('\n')
}
