const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

export const durationExamples = 'such as 500ms, 10s, 2m or 1h'

/**
 * Parses a text such as `500ms` or `2m` into milliseconds. A number alone has the unit `defaultUnit`.
 * Returns `undefined` for any other text.
 */
export function parseDurationMs(text: string, defaultUnit: keyof typeof units): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text.trim())
  if (!found) return undefined
  return Number(found[1]) * units[(found[2] as keyof typeof units | undefined) ?? defaultUnit]
}
