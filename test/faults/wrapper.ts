import { expect } from 'vitest'
import type { ScriptedServer } from '../harness/server.ts'

/** What a wrapper knows of one run: its exit code, and stderr, whose last line `--errors json` makes JSON. */
interface Seen {
  code: number | string
  err: string
}

/** A run, with the requests that the server had of it. */
interface Attempt extends Seen {
  error: { retry?: string; deadline?: boolean; message?: string }
  requests: readonly string[]
}

/** As often as a wrapper runs a command that may be run again. */
const mostRuns = 2

/**
 * A wrapper as anybody would write it from `parley help exit-codes`: it looks at the exit code, and of a failure at `retry`
 * alone.
 */
export async function persist(run: () => Promise<Seen>, server: ScriptedServer): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (let count = 1; count <= mostRuns; count++) {
    const before = server.requests.length
    const { code, err } = await run()
    const { error } = code === 0 ? { error: {} } : lastLine(err)
    attempts.push({ code, err, error, requests: server.requests.slice(before) })
    if (error.retry !== 'later') break
  }
  return attempts
}

const lastLine = (text: string): Pick<Attempt, 'error'> => JSON.parse(text.trimEnd().split('\n').at(-1) ?? '')

/** What the table of exit codes says of a failure, and that nothing was repeated that may have arrived. */
export function judge(argv: readonly string[], attempts: readonly Attempt[]): void {
  const [first] = attempts as [Attempt]
  const { error, err } = first
  expect(dues(argv, first), err).toContain(error.retry)
  expect(error.deadline ?? false, err).toBe(/\bdeadline\b/.test(error.message ?? ''))
  for (const { code, requests } of attempts.slice(0, -1)) {
    // Those of exit code 6 that may be repeated were refused.
    if (isForEvents(argv) && code !== 6) expect(requests.filter(isPost)).toEqual([])
  }
}

function dues(argv: readonly string[], { code, err, error, requests }: Attempt): (string | undefined)[] {
  const mayHaveArrived = isForEvents(argv) && (requests.length === 0 || requests.some(isPost))
  switch (code) {
    case 0:
      return [undefined]
    case 6:
      // An error under status 200 proves no refusal.
      return [mayHaveArrived && err.includes('"status":200') ? 'look-first' : 'later']
    case 9:
      return [isPermanent.test(error.message ?? '') ? 'never' : 'later']
    case 7:
    case 10:
      return [mayHaveArrived ? 'look-first' : 'later']
    case 8:
      if (mayHaveArrived) return ['look-first']
      // By its type.
      if (err.includes('ended with an error')) return ['later', 'never']
      return [
        /broke off|ended early|the answer( \([^)]*\))? is not JSON|the answer is empty/.test(err)
          ? 'later'
          : 'never',
      ]
    case 15:
      return [argv.includes('follow') || argv.includes('--batch') ? 'later' : 'never']
    default:
      // What the session says after the event was accepted does not undo it.
      return [mayHaveArrived && err.includes('the stream of events ended') ? 'look-first' : 'never']
  }
}

/** What no later run changes while the host, its certificate and the proxy stay as they are. */
const isPermanent =
  /no such host|certificate|does not use TLS|versions of TLS|did not answer in HTTP|to \S+: [34]\d\d/

const isPost = (request: string) => request.startsWith('POST ')

/** Whether the command sends events, or anything else that is not to be done twice. */
const isForEvents = (argv: readonly string[]): boolean =>
  (argv.includes('events') && ['send', 'confirm', 'run'].some((name) => argv.includes(name))) ||
  (argv.includes('api') && ['-X', '-i', '--set'].some((flag) => argv.includes(flag)))
