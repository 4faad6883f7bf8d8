import type { BasicContext, Host } from '../basic-context.ts'
import { measureColumns } from '../io/width.ts'

/** Returns false if the text fits on the terminal or no pager works, so the caller must print the text. */
export async function showInPager(
  { host, cleanups }: Pick<BasicContext, 'host' | 'cleanups'>,
  text: string,
): Promise<boolean> {
  const command = choosePager(host)
  if (command === undefined || !host.runPager || !isLong(text, host.stdout)) return false
  // Ctrl-C ends a search in less, so it must not end parley.
  const restoreInterrupt = ignoreInterrupts(host)
  try {
    const { env } = host
    const pager = { text: command, env: { ...env, LESS: env.LESS ?? 'FRX' }, input: text }
    const code = await host.runPager(pager, cleanups)
    // A code over 128 means that a signal ended the pager, after the user saw the text.
    return code === undefined || code === 0 || code > 128
  } finally {
    restoreInterrupt()
  }
}

/** If less is missing, `exec less` alone would print an error. */
const lessIfFound = 'command -v less >/dev/null && exec less'

/** As in git, an empty variable or `cat` turns the pager off. */
function choosePager({ env, platform }: Host): string | undefined {
  if (env.TERM === 'dumb') return undefined
  const command = env.PARLEY_PAGER ?? env.PAGER ?? (platform === 'win32' ? '' : lessIfFound)
  return /^\s*(?:cat)?\s*$/.test(command) ? undefined : command
}

/** Counts one row more than the text has, because the shell's prompt needs a row. */
function isLong(text: string, { columns, rows }: Host['stdout']): boolean {
  if (!columns || !rows) return false
  let count = 1
  for (const line of text.trimEnd().split('\n'))
    count += Math.max(1, Math.ceil(measureColumns(line) / columns))
  return count > rows
}

function ignoreInterrupts(host: Host): () => void {
  let interrupt = host.interceptInterrupt?.(ignoreNext)
  function ignoreNext(): void {
    interrupt = host.interceptInterrupt?.(ignoreNext)
  }
  return () => interrupt?.release()
}
