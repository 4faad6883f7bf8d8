/** Whether a text has more characters than `most`: an emoji counts once, though it is two UTF-16 units. */
export function isLongerThan(text: string, most: number): boolean {
  if (text.length <= most) return false
  let count = 0
  for (let index = 0; index < text.length && count <= most; count++) {
    index += (text.codePointAt(index) as number) > 0xffff ? 2 : 1
  }
  return count > most
}
