const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

export function formatTsvLine(fields: readonly string[]): string {
  return `${fields.map((field) => field.replace(/[\t\n\r\\]/g, (char) => escapes[char] ?? char)).join('\t')}\n`
}
