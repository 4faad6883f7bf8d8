import { type Container, createItem, leadOf, mostContainers, withBox } from './containers.ts'
import type { Span } from './paint.ts'

/** Which quotes and items the line is inside of that is being read. */
export interface Outline {
  readonly containers: readonly Container[]
  /** By how many columns what comes next is indented. */
  readonly indent: number
  /** The line goes on with all that the one before was in. */
  readonly isSame: boolean
  /** An item begins on this line. */
  readonly hasMarker: boolean
  readonly hasRoom: boolean
  startLine(): void
  addBlank(char: string): void
  /** Finds what goes on before this character; returns whether the character was the mark of a quote. */
  enter(char: string): boolean
  /** Leaves what does not go on. */
  leave(): void
  /** Leaves what a line without text ends. */
  leaveBlank(): void
  openQuote(): void
  openItem(marker: string): void
  tick(isDone: boolean): void
  /** What is before the line, with the markers of items that begin on it. */
  first(): Span[]
  next(): Span[]
}

export function createOutline(): Outline {
  let containers: Container[] = []
  let matched = 0
  let fresh = Infinity
  let indent = 0

  function open(container: Container): void {
    leave()
    fresh = Math.min(fresh, containers.length)
    containers = [...containers, container]
    matched = containers.length
    // A quote's mark takes the blank after it.
    indent = container.kind === 'quote' ? -1 : 0
  }

  function leave(): void {
    containers = containers.slice(0, matched)
  }

  function enter(char: string): boolean {
    for (; matched < containers.length; matched++) {
      const container = containers[matched] as Container
      if (container.kind === 'quote') {
        if (char !== '>') return false
        matched++
        indent = -1
        return true
      }
      if (indent < container.need) return false
      indent -= container.need
    }
    return false
  }

  return {
    get containers() {
      return containers
    },
    get indent() {
      return Math.max(indent, 0)
    },
    get isSame() {
      return matched === containers.length && fresh === Infinity
    },
    get hasMarker() {
      return containers.slice(fresh).some(({ kind }) => kind === 'item')
    },
    get hasRoom() {
      return matched < mostContainers
    },
    startLine() {
      matched = indent = 0
      fresh = Infinity
    },
    addBlank(char) {
      indent += char === '\t' ? 4 - (indent & 3) : 1
    },
    enter,
    leave,
    leaveBlank() {
      while (containers[matched]?.kind === 'item') matched++
      leave()
    },
    openQuote: () => open({ kind: 'quote' }),
    openItem(marker) {
      leave()
      open(createItem(marker, Math.max(indent, 0), containers))
    },
    tick(isDone) {
      containers = [...containers.slice(0, -1), withBox(containers.at(-1) as Container, isDone)]
    },
    first: () => leadOf(containers, fresh),
    next: () => leadOf(containers),
  }
}
