import { type Code, createCode, readFence } from './code.ts'
import { createFlow } from './flow.ts'
import type { Highlight } from './highlighter.ts'
import { createOpening } from './opening.ts'
import { createOutline } from './outline.ts'
import type { Page } from './page.ts'
import { createTables } from './table.ts'

/** The longest line that is kept back for what it may turn out to be, in characters. */
const longestLine = 4000

export interface Blocks {
  push(text: string): void
  end(): void
}

/** Reads line by line what a text is made of, and prints it as soon as that is known. */
export function createBlocks(page: Page, highlightFor: (language: string) => Highlight | undefined): Blocks {
  const flow = createFlow(page)
  const tables = createTables(page, flow)
  const outline = createOutline()
  let mode: 'start' | 'prose' | 'fence' | 'bar' | 'code' | 'done' = 'start'
  let isBegun = false
  let keptLine = ''
  let code: Code | undefined

  const opening = createOpening(outline, {
    text: startText,
    rule() {
      tables.end()
      page.drawRule(outline.first())
      flow.endParagraph()
      mode = 'done'
    },
    whole(kind, text) {
      if (kind === 'fence' || !outline.isSame) tables.end()
      outline.leave()
      keptLine = text
      mode = kind
    },
    code(text) {
      tables.end()
      code = createCode({ page, containers: [], end: 'indent', highlight: undefined })
      code.push(text)
      mode = 'code'
    },
    container(rest) {
      tables.end()
      flow.endParagraph()
      push(rest)
    },
    isInParagraph: () => flow.isInParagraph,
  })

  const pushers = {
    start: opening.push,
    prose: flow.push,
    fence: pushWhole,
    bar: pushWhole,
    code: (text: string) => code?.push(text),
    done() {},
  }
  const enders = {
    start: endStart,
    prose: flow.end,
    fence: endFence,
    bar: () => tables.add(keptLine, outline.next()),
    code: endCode,
    done() {},
  }

  function push(text: string): void {
    for (let at = 0; at < text.length; ) {
      if (text[at] === '\n') {
        endLine()
        at++
        continue
      }
      isBegun = true
      const found = mode === 'start' ? at + 1 : text.indexOf('\n', at)
      const end = found < 0 ? text.length : found
      pushers[mode](text.slice(at, end))
      at = end
    }
  }

  function endLine(): void {
    const isBlank = mode === 'start' && opening.end()
    const ended = mode
    mode = 'start'
    if (ended !== 'start' || isBlank) enders[ended]()
    isBegun = false
    opening.startLine()
  }

  function startText(text: string, look?: string): void {
    tables.end()
    if (!flow.isInParagraph) outline.leave()
    flow.start(outline.first(), outline.next(), look)
    mode = 'prose'
    flow.push(text)
  }

  function pushWhole(text: string): void {
    keptLine += text
    if (keptLine.length > longestLine) startText(keptLine)
  }

  function endStart(): void {
    tables.end()
    flow.endParagraph()
    if (outline.hasMarker) page.printEmpty(outline.first())
    else {
      outline.leaveBlank()
      page.skip(outline.next())
    }
  }

  function endFence(): void {
    const fence = readFence(keptLine)
    if (fence) {
      if (outline.hasMarker) page.printEmpty(outline.first())
      const highlight = highlightFor(fence.language)
      code = createCode({ page, containers: outline.containers, end: fence.end, highlight })
      mode = 'code'
      flow.endParagraph()
    } else {
      startText(keptLine)
      flow.end()
      mode = 'start'
    }
  }

  function endCode(): void {
    const rest = code?.endLine()
    if (rest === undefined) mode = 'code'
    else if (rest !== '') {
      opening.startLine()
      push(`${rest}\n`)
    }
  }

  return {
    push,
    end() {
      if (isBegun) endLine()
      tables.end()
    },
  }
}
