import { expect } from 'vitest'
import { response, type Script } from '../harness/server.ts'
import { okOutput, okResponse, respondWith, sendOutput, sendResponse, sseHead, textDelta } from './answers.ts'
import { chatArgv, type FaultRow, forChatAndSend, row, streamArgv, testNetworkFaults } from './rows.ts'

/** Returns an error response with the message "no". */
const refusal = (status: string, ...headers: string[]) => response('{"error":"no"}', status, headers)
const slow = (...headers: string[]) => refusal('429 Too Many Requests', ...headers)
const done = response('{"content":"ok","data":[]}')
const once = (first: Uint8Array): Script => respondWith(first, done)

const retried = { code: 0, reqs: 2, err: [/^parley: .*; trying again in .*\n/] } satisfies Partial<FaultRow>
/**
 * Fields of a row whose single response has this status, and which expects this exit code without a retry.
 */
const notRetried = (status: string, code: number, ...headers: string[]) => ({
  script: respondWith(refusal(status, ...headers)),
  code,
})

testNetworkFaults('T: parley retries only what is safe to retry', [
  ...forChatAndSend(
    'T01: parley waits for the time of Retry-After after a 429',
    { script: once(slow('retry-after: 1')), flags: ['-v'] },
    { ...retried, err: ['trying again in 1.0 s'], minSeconds: 1 },
  ),
  ...forChatAndSend(
    'T06: parley --errors json exits with 6 at once and prints retryAfter if Retry-After exceeds the wait limit',
    { ...notRetried('429 No', 6, 'retry-after: 3600'), flags: ['--errors', 'json'] },
    { err: ['"retryAfter":3600', '"sent":"yes"', '"safeToRetry":true', '"attempts":1'] },
  ),
  ...forChatAndSend(
    'T08: parley exits with 6 after the last retry if every response is a 429',
    { script: respondWith(slow()), flags: ['--retries', '1'] },
    { code: 6, reqs: 2, err: ['the service says: no'] },
  ),
  ...forChatAndSend('T13: parley exits with 3 on a 401 and names the variable of the rejected credentials', {
    ...notRetried('401 No', 3),
    err: [/PARLEY_(ACCESS_TOKEN|API_KEY)/],
  }),
  ...forChatAndSend('T16: parley sends the same bytes again if it retries a 429', {
    ...retried,
    script: once(slow()),
    check: ({ server }) => expect(server.requests[1]).toBe(server.requests[0]),
  }),
  row('T17: parley sends an event from stdin again after a 429', {
    ...retried,
    argv: ['events', 'send'],
    stdin: '{"type":"user.message","content":[{"type":"text","text":"once"}]}\n',
    script: respondWith(slow(), sendResponse),
    out: sendOutput,
    check: ({ server }) => {
      for (const request of server.requests)
        expect(request).toContain(
          '{"events":[{"type":"user.message","content":[{"type":"text","text":"once"}]',
        )
    },
  }),
  ...forChatAndSend(
    'T18: parley exits with 6 instead of waiting if Retry-After ends after the deadline',
    { script: respondWith(slow('retry-after: 1')), flags: ['--deadline', '2', '--retries', '9'] },
    { code: 6, reqs: 2, err: ['past the deadline'] },
  ),
  ...forChatAndSend(
    'T19: parley reports that nothing was accepted if SIGINT ends the wait after a 429',
    { script: respondWith(slow('retry-after: 30')), signal: { name: 'SIGINT', at: 'err' } },
    { code: 'SIGINT', err: ['parley: interrupted: nothing was accepted'] },
  ),
  row(
    'T21: parley does not restart a stream that breaks after its first text',
    { argv: streamArgv, script: (socket) => void socket.end(sseHead + textDelta('begun')) },
    { code: 8, out: 'begun\n', err: ['the stream ended early'] },
  ),
  row(
    'T26: parley prints no notices of retries with --quiet',
    { argv: [...chatArgv, '--quiet'], script: respondWith(slow(), okResponse) },
    { ...retried, out: okOutput, err: [/^$/] },
  ),
])
