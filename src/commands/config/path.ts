import type { Context } from '../../context.ts'
import { requireProfilePath } from '../../settings/folder.ts'
import { escapeControls } from '../../terminal/escape.ts'

export function declare(): void {}

export async function run({ host, output }: Context): Promise<void> {
  const path = requireProfilePath(host)
  await output.write(`${output.isTerminal ? escapeControls(path) : path}\n`)
}
