/** What a line begins with. */
export type LineStart =
  /** Not known yet. */
  | { kind: 'more' }
  | { kind: 'text' }
  | { kind: 'quote' }
  | { kind: 'heading'; level: number }
  | { kind: 'rule' }
  /** An item's marker; `rest` is what was read after it. */
  | { kind: 'item'; marker: string; rest: string }
  | { kind: 'task'; isDone: boolean }
  /** Only the end of the line shows whether it is one. */
  | { kind: 'fence' }
  | { kind: 'bar' }

const more = { kind: 'more' } as const
const text = { kind: 'text' } as const

/** How much is read of a beginning that may be several things, in characters. */
const longestStart = 200

/**
 * Reads the first characters of a line, without the blanks before them. It is called after each character until the
 * line is known, so that no text waits longer than necessary.
 */
export function readLineStart(head: string, isLineEnd: boolean, isAtItem: boolean): LineStart {
  const first = head[0] as string
  if (first === '>') return { kind: 'quote' }
  if (first === '|') return { kind: 'bar' }
  if (head.length > longestStart) return isFence(head) ? { kind: 'fence' } : readItem(head)
  if (first === '#') return readHeading(head, isLineEnd)
  if (first === '`' || first === '~') return readFence(head, isLineEnd)
  if (first === '-' || first === '*' || first === '_') return readRule(head, isLineEnd)
  if (first === '+') return head.length === 1 && !isLineEnd ? more : readItem(head)
  if (isDigit(first)) return readNumber(head, isLineEnd)
  if (first === '[' && isAtItem) return readTask(head, isLineEnd)
  return text
}

function readHeading(head: string, isLineEnd: boolean): LineStart {
  let level = 1
  while (head[level] === '#') level++
  if (level > 6) return text
  if (head.length === level) return isLineEnd ? { kind: 'heading', level } : more
  return isBlank(head[level]) ? { kind: 'heading', level } : text
}

function readFence(head: string, isLineEnd: boolean): LineStart {
  if (isFence(head)) return { kind: 'fence' }
  return isLineEnd || head !== (head[0] as string).repeat(head.length) ? text : more
}

const isFence = (head: string) => head.startsWith('```') || head.startsWith('~~~')

/** `---`, `* * *`: it may also be an item or text, until something else follows. */
function readRule(head: string, isLineEnd: boolean): LineStart {
  const last = head.at(-1)
  const isOpen = last === head[0] || isBlank(last)
  if (isOpen && !isLineEnd) return more
  const count = head.split(head[0] as string).length - 1
  return isOpen && count >= 3 ? { kind: 'rule' } : readItem(head)
}

function readItem(head: string): LineStart {
  if (!/^[-*+]$/.test(head[0] as string) || !(head.length === 1 || isBlank(head[1]))) return text
  return { kind: 'item', marker: head[0] as string, rest: head.slice(2) }
}

function readNumber(head: string, isLineEnd: boolean): LineStart {
  let end = 1
  while (isDigit(head[end])) end++
  if (end > 9) return text
  if (head.length === end) return isLineEnd ? text : more
  if (head[end] !== '.' && head[end] !== ')') return text
  if (head.length === end + 1 && !isLineEnd) return more
  return head.length === end + 1 || isBlank(head[end + 1])
    ? { kind: 'item', marker: head.slice(0, end + 1), rest: '' }
    : text
}

function readTask(head: string, isLineEnd: boolean): LineStart {
  const [, box, close, after] = head
  if (box === undefined || (close === undefined && /[ xX]/.test(box))) return isLineEnd ? text : more
  if (!/[ xX]/.test(box) || close !== ']') return text
  if (after === undefined && !isLineEnd) return more
  return after === undefined || isBlank(after) ? { kind: 'task', isDone: box !== ' ' } : text
}

const isBlank = (char: string | undefined) => char === ' ' || char === '\t'
const isDigit = (char: string | undefined) => char !== undefined && char >= '0' && char <= '9'
