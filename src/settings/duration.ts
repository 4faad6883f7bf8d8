const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** The forms in which a person writes a duration, for messages. */
export const durationForms = 'such as 500ms, 10s, 2m or 1h'

/**
 * Reads a duration: `500ms`, `10s`, `2m`, `1h`, or a bare number, which counts in the unit `bare`. Returns
 * milliseconds, or `undefined` for a text that has none of these forms.
 */
export function parseDuration(text: string, bare: keyof typeof units): number | undefined {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text.trim())
  if (!found) return undefined
  return Number(found[1]) * units[(found[2] as keyof typeof units | undefined) ?? bare]
}
