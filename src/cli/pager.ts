import type { Context, Host } from '../context.ts'

/**
 * Shows a text in the user's pager. Returns false if the text fits on the terminal, no pager exists, or the
 * pager failed. The caller then prints the text.
 */
export async function showInPager(
  { host, cleanups }: Pick<Context, 'host' | 'cleanups'>,
  text: string,
): Promise<boolean> {
  const command = choosePager(host)
  if (command === undefined || !host.runPager || !isLong(text, host.stdout)) return false
  // parley ignores Ctrl-C while the pager runs, because less uses it to end a search.
  const restoreInterrupt = ignoreInterrupts(host)
  try {
    const { env } = host
    const pager = { text: command, env: { ...env, LESS: env.LESS ?? 'FRX' }, input: text }
    const code = await host.runPager(pager, cleanups)
    // A code of more than 128 means that a signal ended the pager. The user has then seen the text, so it is
    // not printed again.
    return code === undefined || code === 0 || code > 128
  } finally {
    restoreInterrupt()
  }
}

/**
 * Command that runs less if it exists. Without the check, the shell would print an error if less is
 * missing.
 */
const lessIfFound = 'command -v less >/dev/null && exec less'

/** Returns the command of the pager. As in git, an empty variable or `cat` means no pager. */
function choosePager({ env, platform }: Host): string | undefined {
  if (env.TERM === 'dumb') return undefined
  const command = env.PARLEY_PAGER ?? env.PAGER ?? (platform === 'win32' ? '' : lessIfFound)
  return /^\s*(?:cat)?\s*$/.test(command) ? undefined : command
}

const colorCode = /\x1b\[[\d;]*m/g

/** Returns whether the text does not fit on the terminal. The shell's next prompt also needs a row. */
function isLong(text: string, { columns, rows }: Host['stdout']): boolean {
  if (!columns || !rows) return false
  let count = 1
  for (const line of text.trimEnd().split('\n'))
    count += Math.max(1, Math.ceil(line.replace(colorCode, '').length / columns))
  return count > rows
}

function ignoreInterrupts(host: Host): () => void {
  let interrupt = host.interceptInterrupt?.(ignoreNext)
  function ignoreNext(): void {
    interrupt = host.interceptInterrupt?.(ignoreNext)
  }
  return () => interrupt?.release()
}
