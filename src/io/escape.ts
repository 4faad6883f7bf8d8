import { getTextStart } from '../wire/text-start.ts'

/**
 * Characters that can control a terminal: C0 except newline and tab, DEL, C1, and the bidi controls, which
 * reorder the text around them.
 */
export const unsafeCharacters = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g

/**
 * Escapes each character separately, so an escape sequence is harmless even if it arrives in pieces. Newlines
 * and tabs stay.
 */
export function escapeControls(text: string): string {
  return text.replace(unsafeCharacters, (char) => {
    const code = char.charCodeAt(0)
    return code > 0x7f ? jsonEscape(char) : `^${String.fromCharCode(code ^ 0x40)}`
  })
}

export const escapeControlsInJson = (text: string): string => text.replace(unsafeCharacters, jsonEscape)

const jsonEscape = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Joins lines, escapes control characters, and cuts a text over `maxLength` characters. */
export function toOneLine(text: string, maxLength = 500): string {
  const start = getTextStart(text, maxLength * 4)
  const characters = [...escapeControls(start.replace(/\s+/g, ' ').trim())]
  const isWhole = characters.length <= maxLength && start.length === text.length
  return isWhole ? characters.join('') : `${characters.slice(0, maxLength - 1).join('')}…`
}

/** Disables the commands that CI runners accept anywhere in a line: `##[…]`, and `##vso[…]` of Azure. */
export const disableInlineCiCommands = (text: string): string => text.replace(/##(?=[a-z]*\[)/gi, '# #')
