/** The longest start of an answer that is kept back until its head is whole, in bytes. */
const longest = 16 * 1024

const start = Buffer.from('HTTP/1.')

/**
 * Makes what takes the chunks of an answer and hands them on, nothing where more has to come first. It leaves out
 * interim answers, of which undici does not survive a `100 Continue`, and the repetition of a length, which it takes
 * for another one. What is no HTTP it leaves as it is.
 */
export function createHeadTidier(): (chunk: Buffer) => Buffer | undefined {
  let kept: Buffer | undefined = Buffer.alloc(0)

  return (chunk) => {
    if (!kept) return chunk
    let rest = Buffer.concat([kept, chunk])
    while (isStart(rest)) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0 && rest.length <= longest && !hasBareLineEnd(rest)) {
        kept = rest
        return undefined
      }
      const head = rest.subarray(0, Math.max(end, 0)).toString('latin1')
      const isInterim = /^HTTP\/1\.\d 1(?!01)\d\d(?: |\r|$)/.test(head)
      if (!isInterim) {
        kept = undefined
        const tidy = withOneLength(head)
        return tidy === head ? rest : Buffer.concat([Buffer.from(tidy, 'latin1'), rest.subarray(end)])
      }
      rest = rest.subarray(end + 4)
    }
    kept = undefined
    return rest
  }
}

/** Whether bytes begin an answer, as far as they go. */
const isStart = (bytes: Buffer) =>
  bytes.subarray(0, start.length).equals(start.subarray(0, Math.min(bytes.length, start.length)))

/** Line ends without their CR are for undici to refuse: no end of a head would be found in them. */
const hasBareLineEnd = (bytes: Buffer) => /(?:^|[^\r])\n/.test(bytes.toString('latin1'))

/** A head that says one length several times says it once. */
function withOneLength(head: string): string {
  const lines = head.split('\r\n')
  const lengths = lines.filter((line) => /^content-length:/i.test(line))
  const values = lengths
    .flatMap((line) => line.slice('content-length:'.length).split(','))
    .map((value) => value.trim())
  if (values.length <= 1 || values.some((value) => value !== values[0])) return head
  const others = lines.filter((line) => !lengths.includes(line))
  return [...others, `content-length: ${values[0]}`].join('\r\n')
}
