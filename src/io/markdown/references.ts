import { unsafeCharacters } from '../escape.ts'

/** Names of the characters from U+00A0 to U+00FF, in their order. */
const latin =
  'nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml'
const greek =
  'Alpha Beta Gamma Delta Epsilon Zeta Eta Theta Iota Kappa Lambda Mu Nu Xi Omicron Pi Rho - Sigma Tau Upsilon Phi Chi Psi Omega'
const others =
  'amp & lt < gt > quot " apos \' OElig Œ oelig œ Scaron Š scaron š Yuml Ÿ fnof ƒ circ ˆ tilde ˜ ndash – mdash — lsquo ‘ rsquo ’ sbquo ‚ ldquo “ rdquo ” bdquo „ dagger † Dagger ‡ bull • hellip … permil ‰ prime ′ Prime ″ lsaquo ‹ rsaquo › oline ‾ frasl ⁄ euro € image ℑ weierp ℘ real ℜ trade ™ alefsym ℵ larr ← uarr ↑ rarr → darr ↓ harr ↔ crarr ↵ lArr ⇐ uArr ⇑ rArr ⇒ dArr ⇓ hArr ⇔ forall ∀ part ∂ exist ∃ empty ∅ nabla ∇ isin ∈ notin ∉ ni ∋ prod ∏ sum ∑ minus − lowast ∗ radic √ prop ∝ infin ∞ ang ∠ and ∧ or ∨ cap ∩ cup ∪ int ∫ there4 ∴ sim ∼ cong ≅ asymp ≈ ne ≠ equiv ≡ le ≤ ge ≥ sub ⊂ sup ⊃ nsub ⊄ sube ⊆ supe ⊇ oplus ⊕ otimes ⊗ perp ⊥ sdot ⋅ lceil ⌈ rceil ⌉ lfloor ⌊ rfloor ⌋ lang ⟨ rang ⟩ loz ◊ spades ♠ clubs ♣ hearts ♥ diams ♦ check ✓ cross ✗ sigmaf ς thetasym ϑ upsih ϒ piv ϖ'

let characters: Map<string, string> | undefined

function readNames(): Map<string, string> {
  const names = new Map(others.match(/\S+ \S/gu)?.map((pair) => pair.split(' ') as [string, string]))
  const addAll = (list: string, first: number) => {
    for (const [index, name] of list.split(' ').entries())
      if (name !== '-') names.set(name, String.fromCodePoint(first + index))
  }
  addAll(latin, 0xa0)
  addAll(greek, 0x391)
  addAll(greek.toLowerCase(), 0x3b1)
  return names
}

const reference = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z][A-Za-z\d]{1,8}));/g
const blank = /^[\s\u200b]$/

/**
 * Replaces character references such as `&amp;` and `&#8212;`. References to control characters, to line
 * breaks and to unknown names stay unchanged.
 */
export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(reference, (source: string, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) {
      characters ??= readNames()
      return characters.get(name) ?? source
    }
    const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal)
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    const char = isCharacter ? String.fromCodePoint(code) : source
    const isControl =
      char.search(unsafeCharacters) >= 0 || (blank.test(char) && char !== '\u00a0' && char !== ' ')
    return isControl ? source : char
  })
}
