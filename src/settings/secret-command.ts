import { type ChildProcess, spawn } from 'node:child_process'
import type { ProcessInfo } from '../context.ts'
import { CliError } from '../errors.ts'
import { endFamily } from '../process-family.ts'
import { schemas } from './schemas.ts'
import { type SettingName, settingNames, settingOf, variableOf } from './table.ts'

export interface SecretCommand {
  /** The setting that has the command. */
  setting: SettingName
  command: string
  /** Where the command comes from, such as `profile 'work'`. */
  origin: string
}

/** Milliseconds. */
const longestRun = 60_000

/** Of what is printed, in bytes. */
const longest = 2 ** 20

/**
 * Runs a command in the shell; the first line of its output is the secret. The command has an empty
 * stdin, and none of the environment's secrets; on a terminal it may ask the person there. Throws a `CliError` with
 * the command's stderr where it fails; `cleanups` can end it at any time, with all processes that it started. `deadline`
 * is milliseconds since the epoch, or Infinity.
 */
export async function runSecretCommand(
  { setting, command, origin }: SecretCommand,
  { env, cwd, platform, hasTerminal, deadline }: ProcessInfo & { hasTerminal: boolean; deadline: number },
  cleanups: Set<() => void>,
): Promise<string> {
  const failed = (why: string) => new CliError('credentials', `${setting} (${origin}) ${why}`)
  // Only with a session of its own can all its processes be ended, but a new session has no terminal.
  const isLeader = !hasTerminal && platform !== 'win32'
  const options = { env: withoutSecrets(env, platform), cwd, shell: true, detached: isLeader } as const
  const child = spawn(command, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = () => endFamily(child, { isLeader, platform, env })
  cleanups.add(stop)
  const { problem, stdout, stderr } = await watch(
    child,
    Math.max(0, Math.min(longestRun, deadline - Date.now())),
    stop,
  )
  cleanups.delete(stop)
  if (problem) throw failed(`${problem}${stderr.trim() ? `: ${stderr}` : ''}`)
  const [line = ''] = stdout.split('\n', 1)
  const parsed = schemas.accessToken().safeParse(line)
  if (parsed.success) return parsed.data
  throw failed(
    line.trim() ? 'printed a secret with characters that are not allowed in a header' : 'printed nothing',
  )
}

/** What a process printed, and why it failed, if it did. Calls `stop` for one that takes or prints too much. */
function watch(
  child: ChildProcess,
  limit: number,
  stop: () => void,
): Promise<{ stdout: string; stderr: string; problem: string | undefined }> {
  const output = { stdout: '', stderr: '' }
  return new Promise((resolve) => {
    const end = (problem?: string) => {
      clearTimeout(timer)
      // A process that escaped may still have these open: it is not waited for.
      child.stdout?.destroy()
      child.stderr?.destroy()
      child.unref()
      resolve({ ...output, problem })
    }
    const giveUp = (problem: string) => {
      stop()
      end(problem)
    }
    const why =
      limit < longestRun ? 'did not end before the deadline' : `did not end within ${limit / 1000} s`
    const timer = setTimeout(() => giveUp(why), limit)
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.setEncoding('utf8').on('data', (text: string) => {
        output[name] += text
        if (output[name].length > longest) giveUp('printed more than 1 MiB')
      })
    }
    child.once('error', (error: NodeJS.ErrnoException) => end(`could not be run (${error.code})`))
    child.once('close', (code, signal) => end(describe(code, signal)))
  })
}

function describe(code: number | null, signal: NodeJS.Signals | null): string | undefined {
  if (signal) return `was ended by ${signal}`
  return code === 0 ? undefined : `failed with exit code ${code}`
}

function withoutSecrets(
  env: ProcessInfo['env'],
  platform: NodeJS.Platform,
): Record<string, string | undefined> {
  const secrets = settingNames.filter((name) => settingOf(name).secret).map(variableOf)
  // On Windows a variable is found by its name in any case.
  const spelled = (name: string) => (platform === 'win32' ? name.toUpperCase() : name)
  return Object.fromEntries(Object.entries(env).filter(([name]) => !secrets.includes(spelled(name))))
}
