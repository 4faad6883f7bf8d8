import { Argument, Option } from 'commander'
import type { CommandModule } from '../commands/command.ts'
import { createStyle } from '../io/style.ts'
import { printHelp, wrapTopic } from './help-text.ts'
import { isTopic, resolveHelpWords, topics } from './topics.ts'

export default {
  parameters: () => [
    new Argument('[command...]', `a command, or a topic: ${topics.join(', ')}`),
    new Option('--json', 'print the flags and direct subcommands of one command as JSON, for programs'),
  ],

  examples: ['parley help events send', 'parley help exit-codes', 'parley help chat --json'],

  async run(context, { json }: { json?: boolean }, words, help) {
    const { host, flags, output } = context
    if (json) return output.write(`${JSON.stringify(await help.describe(words))}\n`)
    const target = resolveHelpWords(words)
    const [name = '', ...rest] = target
    // `policy` is both a topic and a command group. `help policy` prints the topic, and `help policy check`
    // prints the help of the command.
    if (!isTopic(name) || rest.length > 0) return help.showHelp(target)
    const { columns } = host.stdout
    const { formatTopic } = await import('./topic-texts.ts')
    const style = await createStyle(flags.color, host.env, output.isTerminal)
    await printHelp(context, wrapTopic(formatTopic(name, columns), columns, style), flags.pager ?? true)
  },
} satisfies CommandModule
