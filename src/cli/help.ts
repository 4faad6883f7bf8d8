import { Argument, Option } from 'commander'
import type { CommandEntry, CommandModule } from '../commands/command.ts'
import { createStyle } from '../io/style.ts'
import { printHelp, wrapHelp, wrapTopic } from './help-text.ts'
import { loadCommand } from './loaded-commands.ts'
import { isTopic, resolveHelpWords, topics } from './topics.ts'

export const createHelpCommand = (root: CommandEntry): CommandModule => ({
  parameters: () => [
    new Argument('[command...]', `a command, or a topic: ${topics.join(', ')}`),
    new Option('--json', 'print the flags and direct subcommands of one command as JSON, for programs'),
  ],

  examples: ['parley help events send', 'parley help exit-codes', 'parley help chat --json'],

  async run(context, { json }: { json?: boolean }, words) {
    const { host, flags, output } = context
    const { columns } = host.stdout
    const load = (names: string[]) => loadCommand(root, names, { isHelp: !json, columns })
    if (json) {
      const { describeCommandForPrograms } = await import('./help-json.ts')
      return output.write(`${JSON.stringify(describeCommandForPrograms(await load(words)))}\n`)
    }
    const target = resolveHelpWords(words)
    const [name = '', ...rest] = target
    const style = await createStyle(flags.color, host.env, output.isTerminal)
    // `policy` is both a topic and a command group. `help policy` prints the topic, and `help policy check`
    // prints the help of the command.
    const text =
      isTopic(name) && rest.length === 0
        ? wrapTopic((await import('./topic-texts.ts')).formatTopic(name, columns), columns, style)
        : wrapHelp((await load(target)).helpInformation(), columns, style)
    await printHelp(context, text, flags.pager ?? true)
  },
})
