const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

/** A line of tab-separated fields that any tool can split: tabs, line breaks and backslashes are escaped. */
export function toTsv(fields: readonly string[]): string {
  return `${fields.map((field) => field.replace(/[\t\n\r\\]/g, (char) => escapes[char] ?? char)).join('\t')}\n`
}
