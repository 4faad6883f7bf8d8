import { exec } from 'node:child_process'
import { CliError } from '../errors.ts'
import type { Place } from './folder.ts'
import { schemas } from './schemas.ts'
import { type SettingName, settingNames, settingOf, variableOf } from './table.ts'

export interface SecretCommand {
  /** The setting that holds the command. */
  setting: SettingName
  command: string
  /** Where it stands, as a person would look for it. */
  origin: string
}

/** Milliseconds. */
const limit = 60_000

/**
 * Has the shell run a command and takes the first line of its output for the secret. The command has an empty
 * stdin, and none of the environment's secrets. Throws a `CliError` with the command's stderr where it fails;
 * `cleanups` can end it at any time.
 */
export async function runSecretCommand(
  { setting, command, origin }: SecretCommand,
  { env, cwd }: Place,
  cleanups: Set<() => void>,
): Promise<string> {
  const failed = (why: string) => new CliError('credentials', `${setting} (${origin}) ${why}`)
  const output = await new Promise<string>((resolve, reject) => {
    const options = { env: withoutSecrets(env), cwd, timeout: limit, killSignal: 'SIGKILL' } as const
    const child = exec(command, options, (error, stdout, stderr) => {
      cleanups.delete(stop)
      if (!error) resolve(stdout)
      else reject(failed(`${describe(error)}${stderr.trim() ? `: ${stderr}` : ''}`))
    })
    const stop = () => void child.kill()
    cleanups.add(stop)
    child.stdin?.end()
  })
  const [line = ''] = output.split('\n', 1)
  const parsed = schemas.accessToken().safeParse(line)
  if (parsed.success) return parsed.data
  throw failed(line.trim() ? 'printed a secret with characters that no header can carry' : 'printed nothing')
}

/** Never by its message, which quotes the output. */
function describe({ code, signal, killed }: { code?: unknown; signal?: unknown; killed?: boolean }): string {
  if (killed) return `did not end within ${limit / 1000} s`
  if (signal) return `was ended by ${signal}`
  return typeof code === 'number' ? `failed with exit code ${code}` : `could not be run (${code})`
}

function withoutSecrets(env: Place['env']): Record<string, string | undefined> {
  const secrets = settingNames.filter((name) => settingOf(name).secret).map(variableOf)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secrets.includes(name)))
}
