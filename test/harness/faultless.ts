import type { Socket } from 'node:net'
import { messageStop, sseEvent, sseHead, textDelta } from '../faults/answers.ts'
import { imageAnswer, inline, png } from '../gateway/image/image.ts'
import { message } from './run.ts'
import { response, type Script } from './server.ts'

/** Returns the script of a server that answers every request of both services correctly with `text`. */
export function answerWithoutFault(text: string): Script {
  const done = { id: 'sevt_3', type: 'session.status_idle', stop_reason: { type: 'end_turn' } }
  const said = { id: 'sevt_2', type: 'agent.message', content: [{ type: 'text', text }] }
  const asked = { id: 'sevt_1', type: 'user.message', content: [{ type: 'text', text: 'hi' }] }
  const listed: object[] = []
  const open = new Set<Socket>()
  return (socket, request) => {
    const [, method, path = ''] = /^(\S+) (\S+)/.exec(request) ?? []
    if (path.includes('/events/stream')) {
      open.add(socket)
      socket.write(sseHead)
    } else if (path.includes('/events') && method === 'GET')
      socket.write(response(JSON.stringify({ data: listed, next_page: null })))
    else if (path.includes('/events')) {
      listed.push(asked, said, done)
      const sent = { id: text === 'ok' ? 'sevt_1' : text, type: 'user.message', processed_at: null }
      socket.write(response(JSON.stringify({ data: [sent] })))
      for (const value of [asked, said, done]) for (const each of open) each.write(sseEvent(value, 'message'))
    } else if (path.includes('alt=sse')) socket.end(sseHead + textDelta(text) + messageStop)
    else if (path.startsWith('/api/image')) socket.write(response(imageAnswer(inline(png()))))
    else socket.write(response(path.includes('generateContent') ? message(text) : '{"data":[]}'))
  }
}
