/** Every text of at most so many of these pieces, the short ones first. */
export function smallTexts(pieces: string[], most: number): string[] {
  const byCount: string[][] = [['']]
  for (let count = 0; count < most; count++)
    byCount.push((byCount.at(-1) ?? []).flatMap((text) => pieces.map((piece) => text + piece)))
  return byCount.flat()
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** A text in two pieces, with an empty one between them, for each place where it can be cut. */
export const cutsOf = (text: string): string[][] =>
  [...text].map((_, place) => [text.slice(0, place), '', text.slice(place)])
