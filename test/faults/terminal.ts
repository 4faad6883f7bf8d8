/**
 * Returns a bash command that runs `command` on a new terminal, and copies the terminal's output to `log`.
 */
export const terminalCommand = (command: string, log = '/dev/null'): string =>
  `script -qefc ${quoteForShell(command)} ${log} </dev/null`

export const quoteForShell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
