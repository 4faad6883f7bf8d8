/** A command for bash that runs another one on a terminal of its own, whose output it prints, and keeps in a log. */
export const onTerminal = (command: string, log = '/dev/null'): string =>
  `script -qefc ${quote(command)} ${log} </dev/null`

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
