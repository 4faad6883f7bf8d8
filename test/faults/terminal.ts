/** Returns a bash command that runs `command` on a new terminal, prints its output, and logs it. */
export const onTerminal = (command: string, log = '/dev/null'): string =>
  `script -qefc ${quote(command)} ${log} </dev/null`

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
