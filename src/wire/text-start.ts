/** At most the first `length` UTF-16 units of a text, and no half character at the end. */
export function startOf(text: string, length: number): string {
  if (text.length <= length) return text
  return text.slice(0, length).replace(/[\ud800-\udbff]$/, '')
}
