import type { Context } from '../context.ts'
import { oneLine } from '../io/escape.ts'
import type { Exchange } from '../wire/exchange.ts'

/** Shows on stderr what is sent and what comes back, secrets redacted: `--verbose`. */
export function withLog(exchange: Exchange, { tell, secrets, timers }: Context): Exchange {
  const log = (mark: '>' | '<', lines: string[]) => {
    for (const line of lines) tell(`${mark} ${oneLine(secrets.redact(line), 4000)}`)
  }
  const lines = (headers: Record<string, string>) =>
    Object.entries(secrets.redactHeaders(headers)).map(([name, value]) => `${name}: ${value}`)

  return async (request, onSent) => {
    const start = timers.now()
    const size = request.body ? [`(${request.body.length} bytes)`] : []
    log('>', [`${request.method} ${request.url}`, ...lines(request.headers), ...size])
    const response = await exchange(request, onSent)
    const took = `after ${timers.now() - start} ms`
    log('<', [`${response.status} ${response.statusText} (${took})`, ...lines(response.headers)])
    return response
  }
}
