import type { Socket } from 'node:net'

/** A stream of native chunks that a server sends: its text, and whether it is complete. */
export interface SentStream {
  text: string
  isWhole: boolean
}

type Piece = { frame: string; text?: string }

const chunk = (text: string, finishReason?: string | number): Piece => ({
  frame: `data: ${JSON.stringify({
    candidates: [
      {
        content: { parts: text === '' ? [] : [{ text }] },
        ...(finishReason === undefined ? {} : { finishReason }),
      },
    ],
  })}\n\n`,
  text,
})
const call: Piece = {
  frame:
    'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}\n\n',
}
const usage: Piece = { frame: 'data: {"usageMetadata":{"totalTokenCount":7}}\n\n' }
const failure: Piece = { frame: 'data: {"error":{"code":499,"message":"gone"}}\n\n' }
const bareFailure: Piece = { frame: '{"error":{"code":499,"message":"gone"}}\n' }
const done: Piece = { frame: 'data: [DONE]\n\n' }

/** Ends of streams. The last finish reason alone does not show whether a stream is complete (recorded, 1). */
export const endings: { name: string; pieces: Piece[]; isCut: boolean; isWhole: boolean }[] = [
  { name: 'stops', pieces: [chunk('Hi', 'STOP')], isCut: false, isWhole: true },
  { name: 'stops by number', pieces: [chunk('Hi'), chunk('', 1)], isCut: false, isWhole: true },
  {
    name: 'stops in every chunk',
    pieces: [chunk('Hi', 'STOP'), chunk(' you', 'STOP')],
    isCut: false,
    isWhole: true,
  },
  {
    name: 'stops for a tool',
    pieces: [call, chunk('Hi'), chunk(' you', 'STOP')],
    isCut: false,
    isWhole: true,
  },
  { name: 'stops early, with usage last', pieces: [chunk('Hi', 'STOP'), usage], isCut: false, isWhole: true },
  { name: 'sends [DONE]', pieces: [chunk('Hi'), done], isCut: false, isWhole: true },
  {
    name: 'stops, then continues',
    pieces: [chunk('Hi', 'STOP'), chunk(' you')],
    isCut: false,
    isWhole: false,
  },
  { name: 'stops for a tool, then is cut', pieces: [call], isCut: true, isWhole: false },
  { name: 'stops, then is cut', pieces: [chunk('Hi', 'STOP')], isCut: true, isWhole: false },
  {
    name: 'continues, then is cut',
    pieces: [chunk('Hi', 'STOP'), chunk(' you')],
    isCut: true,
    isWhole: false,
  },
  { name: 'stops, then fails', pieces: [chunk('Hi', 'STOP'), failure], isCut: false, isWhole: false },
  {
    name: 'stops, then fails without framing',
    pieces: [chunk('Hi', 'STOP'), bareFailure],
    isCut: false,
    isWhole: false,
  },
  {
    name: 'has no reason',
    pieces: [chunk('Hi', 'FINISH_REASON_UNSPECIFIED')],
    isCut: false,
    isWhole: false,
  },
]

/**
 * Sends a stream piece by piece with a pause in milliseconds. It is chunked, so that a client can distinguish
 * a cut from the end.
 */
export function sendStream(socket: Socket, ending: (typeof endings)[number], pause: number): SentStream {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n')
  const { pieces, isCut } = ending
  for (const [i, { frame }] of pieces.entries()) {
    setTimeout(() => {
      if (socket.destroyed) return
      socket.write(`${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`)
      if (i < pieces.length - 1) return
      if (isCut) socket.end()
      else socket.write('0\r\n\r\n')
    }, i * pause)
  }
  return { text: pieces.map(({ text = '' }) => text).join(''), isWhole: ending.isWhole }
}
