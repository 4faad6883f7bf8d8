import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { requireProfilePath } from '../../settings/profile-file.ts'

export const examples = ['parley config path']

export async function run({ host, output }: Context): Promise<void> {
  const path = requireProfilePath(host)
  await output.write(`${output.isTerminal ? escapeControls(path) : path}\n`)
}
