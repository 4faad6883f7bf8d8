import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { expect, onTestFailed, TestRunner } from 'vitest'
import type { Host, StdStream } from '../../src/basic-context.ts'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { main } from '../../src/main.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../../src/wire/exchange.ts'
import { createSteadyClock } from './clock.ts'
import { requireFormats } from './formats.ts'
import { createStdout } from './stdout.ts'

/**
 * Parts of the host that a test may replace. Defaults: streams that accept everything, a clock that is 50 times
 * as fast as real time, the user of the tests, and no pager. `onSignal` and `reportBugs` get the functions that
 * parley runs then, so a test can simulate a signal or an uncaught error.
 */
type HostOptions = Partial<Omit<Host, 'env' | 'stdin' | 'exchange'>>

export interface RunOptions extends HostOptions {
  /** Content of stdin. The elements of an array arrive one by one. */
  stdin?: string | Uint8Array | (string | Uint8Array)[] | AsyncIterable<string>
  /** Kind of stdin. Default: a pipe if `stdin` is set, otherwise a terminal. */
  stdinKind?: Host['stdin']['kind']
  /** Text that is typed if stdin is a terminal. */
  typed?: string | AsyncIterable<string>
  env?: Record<string, string | undefined>
  /** Output streams that are terminals. Default: none. */
  tty?: ('stdout' | 'stderr')[]
  columns?: number
  /** Height of stdout in rows, if it is a terminal. */
  rows?: number
  /** Replaces the network. Default: the emulator. With `network`, the run uses sockets. */
  exchange?: Exchange | 'network'
}

interface Ended {
  code: number
  out: string
  err: string
  outBytes: Uint8Array
  /** Requests in order. `text` is the body. */
  requests: (HttpRequest & { text: string })[]
}

/** Credentials for tests that do not depend on their values. */
export const credentials = {
  PARLEY_BASE_URL: 'https://gateway.test',
  PARLEY_ACCESS_TOKEN: 'canary-token-0123456789',
  PARLEY_AGENTS_URL: 'https://agents.test',
  PARLEY_API_KEY: 'canary-key-0123456789',
}

/** Creates a folder with these files, given by path. */
export function temporaryFolder(files: Record<string, string | Uint8Array> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'parley-test-'))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  return folder
}

export const readText = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8')

/** Parses lines of JSON. */
export const parseLines = (text: string) =>
  text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))

export const readJson = (folder: string, name: string) => JSON.parse(readText(folder, name))

/** Empty folders of earlier runs, for reuse, because creating a folder can take longer than a run. */
const emptyFolders: string[] = []

/** Mode of a file that only its owner can use. On Windows Node always reports 0666. */
export const ownerOnlyMode = process.platform === 'win32' ? 0o666 : 0o600

/** Path of the folder of the profile file in a home folder. */
export const configFolder = process.platform === 'darwin' ? 'Library/Preferences/parley' : '.config/parley'

/** Returns the variables for a home folder. Windows has separate variables for settings and caches. */
export const homeVariables = (home: string) => ({
  HOME: home,
  XDG_CACHE_HOME: join(home, '.cache'),
  APPDATA: join(home, '.config'),
  LOCALAPPDATA: join(home, '.cache'),
})

export const { openCacheFolder } = createRequire(import.meta.url)('../../bin/compiled-code.cjs')

/**
 * Runs parley in this process, with its own home folder and environment. Throws if JSON output does not have
 * the documented fields.
 */
export async function run(argv: string[], options: RunOptions = {}): Promise<Ended> {
  const { stdin, stdinKind, typed, env, tty = [], columns, rows, exchange, ...replaced } = options
  const requests: Ended['requests'] = []
  const isProof = process.env.TEST_PROOF === 'answers' && exchange !== 'network'
  const exchangeOrNetwork = exchange === undefined || isProof ? createEmulator({}) : exchange
  const stdout = createCollector(tty.includes('stdout'))
  const stderr = createCollector(tty.includes('stderr'))
  const cwd = options.cwd ?? emptyFolders.pop() ?? temporaryFolder()
  const host: Host = {
    env: { ...homeVariables(cwd), ...credentials, ...env },
    cwd,
    platform: process.platform,
    uid: process.getuid?.(),
    stdin: {
      kind: stdinKind ?? (stdin === undefined ? 'terminal' : 'pipe'),
      open: () => Readable.from(pieces(stdin ?? typeLines(typed ?? ''))),
    },
    stdout: { ...stdout.end, columns, rows },
    stderr: { ...stderr.end, columns, rows },
    timers: createFastClock(),
    openCacheFolder,
    ...Object.fromEntries(Object.entries(replaced).filter(([, value]) => value !== undefined)),
    ...(exchangeOrNetwork === 'network'
      ? {}
      : {
          exchange: (request, onSent) => {
            requests.push({ ...request, text: Buffer.from(request.body ?? []).toString() })
            return exchangeOrNetwork(request, onSent)
          },
        }),
  }
  const code = await main(argv, host)
  const [out, err] = [stdout, stderr].map(({ bytes }) => Buffer.from(bytes()).toString()) as [string, string]
  requireFormats(argv, { code, out, err, cwd })
  printIfTestFails(argv, { code, err, requests })
  if (options.cwd === undefined && readdirSync(cwd).length === 0) emptyFolders.push(cwd)
  return { code, requests, outBytes: stdout.bytes(), out, err }
}

/** Fields of a run that ends with this code before it prints or sends anything, and prints this message. */
export const rejected = (code: number, err: string | RegExp) => ({
  code,
  out: '',
  requests: [],
  err: typeof err === 'string' ? expect.stringContaining(err) : expect.stringMatching(err),
})

/** Returns the error that `--errors json` printed in the last line of stderr. */
export const readError = (err: string) => JSON.parse(err.trim().split('\n').at(-1) ?? '').error

/** Creates the option `onSignal`, and a function that simulates a signal and returns what parley prints. */
export function createInterrupt() {
  let act: (exit: number) => string = () => ''
  const onSignal = (given: typeof act) => {
    act = given
  }
  return { onSignal, interrupt: (exit = 130) => act(exit) }
}

/** Maximum length of each text that is printed for a failed test. */
const maxShown = 2_000

/** Prints the run's command line, messages and requests if the current test fails. */
function printIfTestFails(
  argv: string[],
  { code, err, requests }: Pick<Ended, 'code' | 'err' | 'requests'>,
): void {
  // In a hook or in a concurrent test there is no current test, and onTestFailed would throw.
  if (TestRunner.getCurrentTest() === undefined) return
  onTestFailed(() => {
    const lines = requests.map(({ method, url, text }) => `${method} ${url} ${text.slice(0, maxShown)}`)
    const text = [`parley ${argv.join(' ')}: exit ${code}`, err.slice(0, maxShown), ...lines].join('\n')
    process.stderr.write(`${text}\n`)
  })
}

/** Yields typed text line by line, as a terminal delivers it. */
const typeLines = (typed: NonNullable<RunOptions['typed']>) =>
  typeof typed === 'string' ? typed.split(/(?<=[\r\n])/) : typed

async function* pieces(
  stdin: NonNullable<RunOptions['stdin'] | RunOptions['typed']>,
): AsyncGenerator<Uint8Array> {
  const isOne = typeof stdin === 'string' || stdin instanceof Uint8Array
  for await (const piece of isOne ? [stdin] : stdin) yield Buffer.from(piece as string)
}

/** Creates an output stream, and a function that returns the bytes that it has accepted. */
export function createCollector(isTerminal = false): { end: StdStream; bytes(): Buffer } {
  const chunks: Buffer[] = []
  const end = createStdout((chunk, done) => {
    chunks.push(chunk)
    done()
  }, isTerminal)
  return { end, bytes: () => Buffer.concat(chunks) }
}

/** Creates a clock that is faster than real time, so that waits of a run are short. */
export const createFastClock = (times = 50): Host['timers'] => createSteadyClock(times)

/** Returns a response with this body. Default content type: JSON. */
export function createResponse(
  body: string | Uint8Array | (string | Uint8Array)[],
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> | undefined } = {},
): HttpResponse {
  const head = { status, statusText: '', headers: { 'content-type': 'application/json', ...headers } }
  return { ...head, body: pieces(body), close() {} }
}

/** Returns a network replacement that answers every request with the same response. */
export const answering =
  (...response: Parameters<typeof createResponse>): Exchange =>
  async () =>
    createResponse(...response)

/** Returns the body of a chat response with this answer. */
export const message = (text: string, more: object = {}) =>
  JSON.stringify({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text }],
    model: 'alpha-2.5-pro',
    stop_reason: 'end_turn',
    usage: { input_tokens: 3, output_tokens: 5 },
    ...more,
  })
