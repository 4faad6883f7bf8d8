/** A piece of text and how it looks: the parameters of a terminal's SGR sequence, '' where it is plain. */
export interface Span {
  text: string
  look: string
}

/** How each thing looks. Only the 16 colours, which every terminal shows in its own theme. */
export const looks = {
  /** By level; deeper ones look like the last. */
  headings: ['1;4;35', '1;35', '1'],
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  address: '2;4',
  frame: '2',
  /** A mark that is shown, as its partner may never come. */
  mark: '2',
  marker: '36',
  done: '32',
} as const

const textOf = (spans: readonly Span[]): string => spans.map(({ text }) => text).join('')

export type Paint = (spans: readonly Span[]) => string

/** Each piece that has a look ends plain, so that no look is left on wherever the text stops. */
export const createPaint =
  (isColoured: boolean): Paint =>
  (spans) => {
    if (!isColoured) return textOf(spans)
    let painted = ''
    for (let at = 0; at < spans.length; ) {
      const { look } = spans[at] as Span
      let text = ''
      while (spans[at]?.look === look) text += spans[at++]?.text
      painted += look === '' || text === '' ? text : `\x1b[${look}m${text}\x1b[0m`
    }
    return painted
  }

/** How many columns something takes. */
export type Measure = (spans: readonly Span[]) => number

/** Most words are ASCII, or one character of Chinese or Japanese: those need no slow look. */
export const createMeasure =
  (widthOf: (text: string) => number): Measure =>
  (spans) => {
    const text = textOf(spans)
    if (/^[\x20-\x7e]*$/.test(text)) return text.length
    return /^[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uff01-\uff60]$/.test(text) ? 2 : widthOf(text)
  }
