import { Argument } from 'commander'
import type { CommandEntry, CommandModule } from '../commands/command.ts'

export const createCompletionCommand = (root: CommandEntry): CommandModule => ({
  parameters: () => [
    new Argument('<shell>', 'the shell to print the script for').choices(['bash', 'zsh', 'fish']),
  ],

  notes: [
    `TAB then completes commands, flags and their values. Put the first of these lines into ~/.bashrc, or the second into ~/.zshrc. For fish run the third once. You can also save the script in the shell's completion folder; zsh requires the file name _parley.

  eval "$(parley completion bash)"
  eval "$(parley completion zsh)"
  parley completion fish > ~/.config/fish/completions/parley.fish`,
  ],

  examples: ['parley completion bash > parley.bash', 'parley completion zsh > _parley'],

  /** Called only if the command line has flags. Without flags, `main` prints the script. */
  async run({ output }, _, [shell = '']) {
    const { findCompletionScript } = await import('./completion/scripts.ts')
    await output.write((await findCompletionScript(shell, async () => root)) ?? '')
  },
})
