import { errorReply, type Reply } from './reply.ts'

/** A second is enough for at least one request, and for all that a limit's bucket takes. */
const retryAfter = { 'retry-after': '1' }

export const limitReply: Reply = errorReply(429, 'too many requests a second', retryAfter)

export const faultReply = (status: number): Reply =>
  errorReply(status, `asked to fail with ${status}`, status === 429 ? retryAfter : undefined)

/** What comes where no endpoint is, or one that has other methods only. */
export const strayReply = (methods: string[]): Reply =>
  methods.length === 0
    ? errorReply(404, 'there is no such endpoint')
    : errorReply(405, `the method must be ${methods.join(' or ')}`, { allow: methods.join(', ') })

/** What a captive portal answers. */
export const pageReply: Reply = {
  status: 200,
  contentType: 'text/html',
  pieces: ['<!doctype html><html><head><title>Please log in</title></head><body>A web page.</body></html>'],
}
