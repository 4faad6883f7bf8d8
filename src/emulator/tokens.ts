/** How many tokens a text counts for: one for each four characters that were begun. */
export const tokensIn = (text: string): number => Math.ceil(text.length / 4)
