import type { IncomingMessage } from 'node:http'

/** The longest body, and the most that all bodies together may take in memory; in bytes. */
const longest = 64 * 1024 * 1024
const most = 256 * 1024 * 1024

export class BodyTooLong extends Error {}

/** Makes what reads the bodies of a server's requests. It throws `BodyTooLong`, and leaves the connection open. */
export function createBodyReader(): (request: IncomingMessage) => Promise<Uint8Array> {
  let held = 0

  return async (request) => {
    if (Number(request.headers['content-length'] ?? 0) > longest) throw tooLong()
    const chunks: Buffer[] = []
    let size = 0
    try {
      await new Promise<void>((resolve, reject) => {
        request.on('data', (chunk: Buffer) => {
          size += chunk.length
          held += chunk.length
          if (size > longest || held > most) reject(tooLong())
          else chunks.push(chunk)
        })
        request
          .on('end', resolve)
          .on('error', reject)
          .on('close', () => reject(new Error('broken off')))
      })
      return Buffer.concat(chunks)
    } finally {
      request.removeAllListeners('data')
      held -= size
    }
  }
}

const tooLong = () => new BodyTooLong('the body is longer than 64 MiB')
