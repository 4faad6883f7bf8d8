/** A command for bash that runs another one on a terminal of its own, whose output it prints. */
export const onTerminal = (command: string): string => `script -qec ${quote(command)} /dev/null </dev/null`

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`
