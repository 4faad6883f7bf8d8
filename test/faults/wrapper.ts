import { expect } from 'vitest'
import type { ScriptedServer } from '../harness/server.ts'

interface RunResult {
  code: number | string
  /** Stderr. Its last line is JSON, because the runs have `--errors json`. */
  err: string
}

/** Run with its JSON error, and the requests that it sent. */
interface Attempt extends RunResult {
  error: { retry?: string; deadline?: boolean; message?: string }
  requests: readonly string[]
}

const maxRuns = 2

/** Repeats a failed command if `retry` is `later`, as `parley help exit-codes` recommends for scripts. */
export async function runWithRetries(
  run: () => Promise<RunResult>,
  server: ScriptedServer,
): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (let count = 1; count <= maxRuns; count++) {
    const before = server.requests.length
    const { code, err } = await run()
    const { error } = code === 0 ? { error: {} } : parseLastLine(err)
    attempts.push({ code, err, error, requests: server.requests.slice(before) })
    if (error.retry !== 'later') break
  }
  return attempts
}

const parseLastLine = (text: string): Pick<Attempt, 'error'> =>
  JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')

/**
 * Checks that `retry` matches the exit code, and that no event was sent again that may have been accepted.
 */
export function checkRetryFields(argv: readonly string[], attempts: readonly Attempt[]): void {
  const [first] = attempts as [Attempt]
  const { error, err } = first
  expect(listAllowedRetries(argv, first), err).toContain(error.retry)
  expect(error.deadline ?? false, err).toBe(/\bdeadline\b/.test(error.message ?? ''))
  for (const { code, requests } of attempts.slice(0, -1)) {
    // After exit code 6 the event may be sent again, because the service refused the request.
    if (mustNotBeRepeated(argv) && code !== 6) expect(requests.filter(isPost)).toEqual([])
  }
}

function listAllowedRetries(
  argv: readonly string[],
  { code, err, error, requests }: Attempt,
): (string | undefined)[] {
  const mayHaveArrived = mustNotBeRepeated(argv) && (requests.length === 0 || requests.some(isPost))
  switch (code) {
    case 0:
      return [undefined]
    case 6:
      // The service may have accepted an event although its response with status 200 contains an error.
      return [mayHaveArrived && err.includes('"status":200') ? 'look-first' : 'later']
    case 9:
      return [isPermanent.test(error.message ?? '') ? 'never' : 'later']
    case 7:
    case 10:
      return [mayHaveArrived ? 'look-first' : 'later']
    case 8:
      if (mayHaveArrived) return ['look-first']
      // Only the type of the error decides whether a repetition may help.
      if (err.includes('ended with an error')) return ['later', 'never']
      return [
        /broke off|ended early|is not JSON|is not a stream of events|the answer is empty/.test(err)
          ? 'later'
          : 'never',
      ]
    case 15:
      return [argv.includes('follow') || argv.includes('--batch') ? 'later' : 'never']
    default:
      // The service may have accepted an event before an error with status 200, or in the session's stream.
      return [mayHaveArrived && /"status":200|the stream of events ended/.test(err) ? 'look-first' : 'never']
  }
}

/** Failures that last until the host, its certificate or the proxy changes. */
const isPermanent =
  /no such host|certificate|does not use TLS|versions of TLS|did not answer in HTTP|to \S+: [34]\d\d/

const isPost = (request: string) => request.startsWith('POST ')

/** Returns whether the command sends an event or another POST, which may act twice if it is repeated. */
const mustNotBeRepeated = (argv: readonly string[]): boolean =>
  (argv.includes('events') && ['send', 'confirm', 'run'].some((name) => argv.includes(name))) ||
  (argv.includes('api') && ['-X', '-i', '--set'].some((flag) => argv.includes(flag)))
