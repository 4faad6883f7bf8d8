export type Style = Record<'dim' | 'bold' | 'red' | 'green' | 'yellow', (text: string) => string>

export const plainStyle: Style = { dim: String, bold: String, red: String, green: String, yellow: String }

export function usesColour(
  choice: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  if (choice === 'always' || choice === 'never') return choice === 'always'
  if (env.NO_COLOR) return false
  if (env.FORCE_COLOR !== undefined) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return isTerminal && env.TERM !== 'dumb' && env.CLICOLOR !== '0'
}

export async function createStyle(...choice: Parameters<typeof usesColour>): Promise<Style> {
  if (!usesColour(...choice)) return plainStyle
  const { Chalk } = await import('chalk')
  return new Chalk({ level: 1 })
}
