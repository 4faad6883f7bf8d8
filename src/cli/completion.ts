import { Argument, type Command } from 'commander'
import type { Context } from '../context.ts'
import type { Grammar } from './entry.ts'

export function declare(command: Command): void {
  command.addArgument(
    new Argument('<shell>', 'the shell that the script is for').choices(['bash', 'zsh', 'fish']),
  )
}

export const notes = [
  `TAB then completes commands, flags and their values, after -s the sessions that were used last on this machine. Put the first of these lines into ~/.bashrc, or the second into ~/.zshrc. For fish run the third once. The script may also be a file in the shell's folder for completions; zsh wants the name _parley.

  eval "$(parley completion bash)"
  eval "$(parley completion zsh)"
  parley completion fish > ~/.config/fish/completions/parley.fish`,
]

export const examples = ['parley completion bash > parley.bash', 'parley completion zsh > _parley']

/** Without flags `main` prints the script. */
export async function run(
  { output }: Context,
  _: unknown,
  [shell = '']: string[],
  grammar: Grammar,
): Promise<void> {
  await output.write((await grammar.findScript(shell)) ?? '')
}
