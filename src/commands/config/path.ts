import type { Command } from 'commander'
import type { Context } from '../../context.ts'
import { requireProfilePath } from '../../settings/folder.ts'
import { escapeControls } from '../../terminal/escape.ts'
import { addExamples } from '../help-text.ts'

export const declare = (command: Command) => addExamples(command, 'parley config path')

export async function run({ host, output }: Context): Promise<void> {
  const path = requireProfilePath(host)
  await output.write(`${output.isTerminal ? escapeControls(path) : path}\n`)
}
