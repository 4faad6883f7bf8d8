import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { profilePath } from '../../settings/profiles.ts'

export function declare(): void {}

export async function run({ host, output }: Context): Promise<void> {
  const path = profilePath(host)
  if (path === undefined)
    throw new CliError('credentials', 'there is no home folder: set HOME or PARLEY_CONFIG_DIR')
  await output.write(`${path}\n`)
}
