import { Help, type Option } from 'commander'
import { type Outline, readOutlines } from './outline.ts'
import { definitions, escapeRoff, literal, prose, section, subsection } from './roff.ts'
import { exitRows, settingRows, variableRows, writers } from './topic-texts.ts'
import type { TopicName } from './topics.ts'

/** Everything that help says, as a page of the manual. */
export async function renderManPage(version: string): Promise<string> {
  const outlines = await readOutlines()
  const commands = outlines.filter(({ examples }) => examples.length > 0)
  const [root] = outlines as [Outline]
  const general = commands.find(({ words }) => words.join() === 'help')?.shared ?? []
  const isGeneral = (flag: Option) => general.some(({ long }) => long === flag.long)
  return `${[
    `.TH PARLEY 1 "" "parley ${version}" "User Commands"`,
    // Neither broken words nor wide gaps, which commands and flags in the text would make.
    '.nh\n.ad l',
    section('name', 'parley \\- one command for a model gateway and an agent session service'),
    section('synopsis', '.B parley', escapeRoff('<command> [flags]')),
    section('description', describeStart()),
    section('flags', definitions(root.flags.map(flagRow))),
    section('commands', ...commands.map(describeCommand)),
    section('flags of every command', definitions(general.map(flagRow))),
    section(
      'flags of every command that sends a request',
      definitions(root.shared.filter((flag) => !isGeneral(flag)).map(flagRow)),
    ),
    section('settings', beginning('settings', '\nSettings:'), definitions(settingRows())),
    section('profiles', prose(writers.profiles(undefined))),
    section('input', prose(writers.input(undefined))),
    section('policy', prose(writers.policy(undefined))),
    // Its flags are among those of chat and image.
    section('batch', beginning('batch', '\nFlags:')),
    section('ci', prose(writers.ci(undefined))),
    section('platforms', prose(writers.platforms(undefined))),
    section('environment', beginning('environment', '\n'), definitions(variableRows())),
    section('exit status', beginning('exit-codes', '\n'), definitions(exitRows())),
    section('examples', literal(commands.map(({ examples: [first = ''] }) => first))),
  ].join('\n')}\n`
}

/** What a topic says before its list. */
function beginning(topic: TopicName, end: string): string {
  const [text = ''] = writers[topic](undefined).split(end, 1)
  return prose(text)
}

const describeStart = () =>
  prose(`Try it, without an account or a network:

  parley chat --profile demo 'Say hello'

Then 'parley config init' asks for your own addresses and credentials. Flags of every command may come before its name.`)

const help = new Help()

const flagRow = (flag: Option): [string, string] => [flag.flags, help.optionDescription(flag)]

function describeCommand({ words, usage, summary, arguments: all, flags, notes, examples }: Outline): string {
  return subsection(
    `parley ${[...words, usage].join(' ')}`,
    prose(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`),
    ...notes.map(prose),
    definitions(all.map((each) => [each.name(), help.argumentDescription(each)])),
    definitions(flags.filter(({ long }) => long !== '--help').map(flagRow)),
    '.PP\nExamples:',
    literal(examples),
  )
}
