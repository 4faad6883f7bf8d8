import { expect } from 'vitest'
import type { ScriptedServer } from '../harness/server.ts'

/** Result of one run. With `--errors json` the last line of stderr is JSON. */
interface RunResult {
  code: number | string
  err: string
}

/** One run and the requests that it sent. */
interface Attempt extends RunResult {
  error: { retry?: string; deadline?: boolean; message?: string }
  requests: readonly string[]
}

const maxRuns = 2

/**
 * Runs a command like a script written from `parley help exit-codes`: it repeats the command if `retry` is
 * `later`.
 */
export async function runWithRetries(
  run: () => Promise<RunResult>,
  server: ScriptedServer,
): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (let count = 1; count <= maxRuns; count++) {
    const before = server.requests.length
    const { code, err } = await run()
    const { error } = code === 0 ? { error: {} } : lastLine(err)
    attempts.push({ code, err, error, requests: server.requests.slice(before) })
    if (error.retry !== 'later') break
  }
  return attempts
}

const lastLine = (text: string): Pick<Attempt, 'error'> => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')

/** Checks that `retry` matches the exit code, and that no request was repeated that may have arrived. */
export function checkRetries(argv: readonly string[], attempts: readonly Attempt[]): void {
  const [first] = attempts as [Attempt]
  const { error, err } = first
  expect(listAllowedRetries(argv, first), err).toContain(error.retry)
  expect(error.deadline ?? false, err).toBe(/\bdeadline\b/.test(error.message ?? ''))
  for (const { code, requests } of attempts.slice(0, -1)) {
    // After exit code 6 a repetition is safe, because the service refused the request.
    if (isForEvents(argv) && code !== 6) expect(requests.filter(isPost)).toEqual([])
  }
}

function listAllowedRetries(
  argv: readonly string[],
  { code, err, error, requests }: Attempt,
): (string | undefined)[] {
  const mayHaveArrived = isForEvents(argv) && (requests.length === 0 || requests.some(isPost))
  switch (code) {
    case 0:
      return [undefined]
    case 6:
      // An error with status 200 does not prove that the service refused the request.
      return [mayHaveArrived && err.includes('"status":200') ? 'look-first' : 'later']
    case 9:
      return [isPermanent.test(error.message ?? '') ? 'never' : 'later']
    case 7:
    case 10:
      return [mayHaveArrived ? 'look-first' : 'later']
    case 8:
      if (mayHaveArrived) return ['look-first']
      // The type of the error decides.
      if (err.includes('ended with an error')) return ['later', 'never']
      return [
        /broke off|ended early|is not JSON|is not a stream of events|the answer is empty/.test(err)
          ? 'later'
          : 'never',
      ]
    case 15:
      return [argv.includes('follow') || argv.includes('--batch') ? 'later' : 'never']
    default:
      // Neither an error with status 200 nor one in the session's stream proves that no event was accepted.
      return [mayHaveArrived && /"status":200|the stream of events ended/.test(err) ? 'look-first' : 'never']
  }
}

/** Failures that last until the host, its certificate or the proxy changes. */
const isPermanent =
  /no such host|certificate|does not use TLS|versions of TLS|did not answer in HTTP|to \S+: [34]\d\d/

const isPost = (request: string) => request.startsWith('POST ')

/** Returns whether the command sends events or another request that must not be repeated. */
const isForEvents = (argv: readonly string[]): boolean =>
  (argv.includes('events') && ['send', 'confirm', 'run'].some((name) => argv.includes(name))) ||
  (argv.includes('api') && ['-X', '-i', '--set'].some((flag) => argv.includes(flag)))
