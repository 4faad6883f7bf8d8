const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

/** Formats one line. Tabs, line breaks and backslashes in a field are escaped. */
export function formatTsvLine(fields: readonly string[]): string {
  return `${fields.map((field) => field.replace(/[\t\n\r\\]/g, (char) => escapes[char] ?? char)).join('\t')}\n`
}
