/** What a body that is not JSON says about an error. */
export interface TextProblem {
  type?: string
  message?: string
  requestId?: string
  /** It is an error in XML, not only words. */
  isError: boolean
}

/** How much of a text is looked at, in characters. */
const longest = 64 * 1024

/** Reads XML, an HTML page, or plain words. */
export function readMarkup(text: string): TextProblem {
  const start = text.slice(0, longest)
  if (!/^\s*</.test(start)) return { message: start.trim() || undefined, isError: false }
  const message = contentOf(start, 'message')
  if (message === undefined) return { message: contentOf(start, 'title'), isError: false }
  return {
    type: contentOf(start, 'code'),
    message,
    requestId: contentOf(start, 'requestid'),
    isError: true,
  }
}

/** The text of an element, wherever it is. Every repetition has a limit, so that no page keeps the CPU busy. */
function contentOf(markup: string, name: string): string | undefined {
  const element = new RegExp(
    `<(?:\\w{1,40}:)?${name}(?:\\s[^>]{0,500})?>(?:<!\\[CDATA\\[)?([^<\\]]{0,10000})`,
    'i',
  )
  return element.exec(markup)?.[1]?.trim() || undefined
}

/** The data of each event, where the text is an event stream. */
export function readEventData(text: string): string[] {
  const start = text.slice(0, longest).trimStart()
  if (!/^(?:data|event|id|retry|):/.test(start)) return []
  return start
    .split(/\r?\n\r?\n/)
    .map((event) =>
      event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5))
        .join('\n'),
    )
    .filter((data) => data !== '')
}
