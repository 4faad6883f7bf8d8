import { helpForm, layOut, layOutTopic } from './help-text.ts'
import { loadCommands } from './loaded-commands.ts'
import { writeTopic } from './topic-texts.ts'
import { topics } from './topics.ts'

/** Everything that help says, as it says it on a screen of 80 columns: a page of the manual. */
export async function renderManPage(version: string): Promise<string> {
  const commands = (await loadCommands()).filter(({ module }) => module)
  return `${[
    `.TH PARLEY 1 "" "parley ${version}" "User Commands"`,
    '.SH NAME\nparley \\- one command for a model gateway and an agent session service',
    section('SYNOPSIS', 'parley <command> [flags]'),
    section('DESCRIPTION', beginning),
    ...commands.map((command) => {
      command.configureOutput({ getOutHelpWidth: () => width, getOutHasColors: () => false })
      const help = command.configureHelp(helpForm).helpInformation()
      return section(`parley ${command.words.join(' ')}`, layOut(help, width, marks))
    }),
    ...topics.map((name) => {
      const title = name.replace('exit-codes', 'exit status').replace('-', ' ')
      return section(title.toUpperCase(), layOutTopic(writeTopic(name, width), width, marks))
    }),
  ].join('\n')}\n`
}

const beginning = `Try it, without an account or a network:

  parley chat --profile demo 'Say hello'

Then 'parley config init' asks for your own addresses and credentials.
Flags of every command may come before its name.
'parley --version' prints the version.`

const width = 80

/** What is bold stands between these until all else is escaped. */
const marks = { bold: (text: string) => `\x01${text}\x02` }

/** A heading, and lines that are printed as they are: no margin, so that they may be as wide as the screen. */
export const section = (title: string, text: string): string =>
  `.SH "${escapeRoff(title)}"\n.nf\n.in 0\n${escapeRoff(text.trimEnd())}\n.in\n.fi`

const codePoint = (char: string) => char.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')

/**
 * A text that roff prints as it is, at the start of a line and in the argument of a macro too: some characters it would
 * take for its own, or print as others.
 */
const escapeRoff = (text: string): string =>
  text
    .replace(/[\\'"`^~]|[^\x00-\x7f]/gu, (char) => `\\[u${codePoint(char)}]`)
    .replaceAll('-', '\\-')
    .replace(/^\./gm, '\\&.')
    .replace(/\x01(.*?)\x02/g, '\\fB$1\\fR')
