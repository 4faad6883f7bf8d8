import type { Context } from '../../context.ts'
import { requireProfilePath } from '../../settings/folder.ts'

export function declare(): void {}

export async function run({ host, output }: Context): Promise<void> {
  await output.write(`${requireProfilePath(host)}\n`)
}
