/** Returns every concatenation of up to `maxPieces` pieces, short ones first. */
export function smallTexts(pieces: string[], maxPieces: number): string[] {
  const byCount: string[][] = [['']]
  for (let count = 0; count < maxPieces; count++)
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

/** Splits a text in two at each offset, with an empty piece between them. */
export const cutsOf = (text: string): string[][] =>
  [...text].map((_, place) => [text.slice(0, place), '', text.slice(place)])
