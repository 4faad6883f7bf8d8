import { helpLayoutOptions, wrapHelp, wrapTopic } from './help-text.ts'
import { loadAllCommands } from './loaded-commands.ts'
import { formatTopic } from './topic-texts.ts'
import { topics } from './topics.ts'

export async function renderManPage(version: string): Promise<string> {
  const commands = (await loadAllCommands()).filter(({ module }) => module)
  return `${[
    `.TH PARLEY 1 "" "parley ${version}" "User Commands"`,
    '.SH NAME\nparley \\- one command for a model gateway and an agent session service',
    renderSection('SYNOPSIS', 'parley <command> [flags]'),
    renderSection('DESCRIPTION', introduction),
    ...commands.map((command) => {
      command.configureOutput({ getOutHelpWidth: () => width, getOutHasColors: () => false })
      const help = command.configureHelp(helpLayoutOptions).helpInformation()
      return renderSection(`parley ${command.commandNames.join(' ')}`, wrapHelp(help, width, boldMarks))
    }),
    ...topics.map((name) => {
      const title = name.replace('exit-codes', 'exit status').replace('-', ' ')
      return renderSection(title.toUpperCase(), wrapTopic(formatTopic(name, width), width, boldMarks))
    }),
  ].join('\n')}\n`
}

const introduction = `Try it, without an account or a network:

  parley chat --profile demo 'Say hello'

Then 'parley config init' asks for your own addresses and credentials.
Shared flags may precede or follow the name of a command.
'parley --version' prints the version.`

const width = 80

/** Control characters cannot occur in help, so they mark bold text until `escapeRoff` replaces them. */
const boldMarks = { bold: (text: string) => `\x01${text}\x02` }

/** The lines are printed as they are, and start at the left margin because they are up to 80 columns wide. */
const renderSection = (title: string, text: string): string =>
  `.SH "${escapeRoff(title)}"\n.nf\n.in 0\n${escapeRoff(text.trimEnd())}\n.in\n.fi`

const codePoint = (char: string) => char.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')

/** The result is valid at the start of a line and as the argument of a macro. */
const escapeRoff = (text: string): string =>
  text
    .replace(/[\\'"`^~]|[^\x00-\x7f]/gu, (char) => `\\[u${codePoint(char)}]`)
    .replaceAll('-', '\\-')
    .replace(/^\./gm, '\\&.')
    .replace(/\x01(.*?)\x02/g, '\\fB$1\\fR')
