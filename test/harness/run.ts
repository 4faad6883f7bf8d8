import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { Host } from '../../src/context.ts'
import { createEmulator } from '../../src/emulator/emulator.ts'
import type { StdStream } from '../../src/io/output.ts'
import { main } from '../../src/main.ts'
import type { Exchange, HttpRequest } from '../../src/wire/exchange.ts'
import { createSteadyClock } from './clock.ts'
import { requireForms } from './formats.ts'

interface World {
  /** What stands on stdin, as a pipe; without it stdin is a terminal. Pieces arrive one by one. */
  stdin?: string | Uint8Array | (string | Uint8Array)[]
  /** By default a pipe, or a terminal. */
  stdinKind?: Host['stdin']['kind']
  /** What a person types, where stdin is a terminal. */
  typed?: string | AsyncIterable<string>
  env?: Record<string, string>
  /** Which of stdout and stderr are terminals. */
  tty?: ('stdout' | 'stderr')[]
  /** How wide they are. */
  columns?: number
  /** Take the place of a stdout and a stderr that take everything. */
  stdout?: StdStream
  stderr?: StdStream
  /** Takes the network's place; by default the emulator answers. `network` goes out over sockets. */
  exchange?: Exchange | 'network'
  cwd?: string
  /** By default the one that the tests run on. */
  uid?: number
  platform?: NodeJS.Platform
  /** Takes the place of the clock, which by default runs fast. */
  timers?: Host['timers']
  /** Gets what a signal would call. */
  onSignal?: Host['onSignal']
  holdMemory?: Host['limitYoungGeneration']
}

interface Ended {
  code: number
  out: string
  err: string
  outBytes: Uint8Array
  /** What was sent, in order. */
  requests: (HttpRequest & { text: string })[]
}

/** Credentials for a run that has nothing to say about them. */
export const credentials = {
  PARLEY_BASE_URL: 'https://gateway.test',
  PARLEY_ACCESS_TOKEN: 'canary-token-0123456789',
  PARLEY_AGENTS_URL: 'https://agents.test',
  PARLEY_API_KEY: 'canary-key-0123456789',
}

export const temporaryFolder = () => mkdtempSync(join(tmpdir(), 'parley-test-'))

/** Of thousands of folders that nothing was put into none is left to be removed at the end of all tests. */
function removeEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // It is not empty.
  }
}

/** The mode of a file for its owner alone. Of modes, Windows has only that a file may be written. */
export const ownerOnly = process.platform === 'win32' ? 0o666 : 0o600

/** Where the profile file lies in a home folder. */
export const configFolder = process.platform === 'darwin' ? 'Library/Preferences/parley' : '.config/parley'

/** What says where home is. Windows has no such folder for settings and caches, but a variable for each user's. */
export const homeVariables = (home: string) => ({
  HOME: home,
  XDG_CACHE_HOME: join(home, '.cache'),
  APPDATA: join(home, '.config'),
  LOCALAPPDATA: join(home, '.cache'),
})

/** Runs parley in this process, in a world of its own. */
export async function run(argv: string[], world: World = {}): Promise<Ended> {
  const requests: Ended['requests'] = []
  const { exchange } = world
  const isWell = exchange === undefined || (process.env.TEST_PROOF === 'answers' && exchange !== 'network')
  const carry = isWell ? createEmulator({}) : exchange
  const stdout = collector(world.tty?.includes('stdout') ?? false)
  const stderr = collector(world.tty?.includes('stderr') ?? false)
  const cwd = world.cwd ?? temporaryFolder()
  const host: Host = {
    env: { ...homeVariables(cwd), ...credentials, ...world.env },
    cwd,
    platform: world.platform ?? process.platform,
    uid: world.uid ?? process.getuid?.(),
    stdin: {
      kind: world.stdinKind ?? (world.stdin === undefined ? 'terminal' : 'pipe'),
      open: () => Readable.from(pieces(world.stdin ?? linesOf(world.typed ?? ''))),
    },
    stdout: world.stdout ?? { ...stdout.end, columns: world.columns },
    stderr: world.stderr ?? { ...stderr.end, columns: world.columns },
    timers: world.timers ?? hurried(),
    onSignal: world.onSignal,
    limitYoungGeneration: world.holdMemory,
    ...(carry === 'network'
      ? {}
      : {
          exchange: (request, onSent) => {
            requests.push({ ...request, text: Buffer.from(request.body ?? []).toString() })
            return carry(request, onSent)
          },
        }),
  }
  const code = await main(argv, host)
  const [out, err] = [stdout, stderr].map(({ bytes }) => Buffer.from(bytes()).toString()) as [string, string]
  requireForms(argv, { code, out, err, cwd })
  if (world.cwd === undefined) removeEmpty(cwd)
  return { code, requests, outBytes: stdout.bytes(), out, err }
}

/** A terminal delivers what is typed line by line. */
const linesOf = (typed: NonNullable<World['typed']>) =>
  typeof typed === 'string' ? typed.split(/(?<=[\r\n])/) : typed

async function* pieces(stdin: NonNullable<World['stdin'] | World['typed']>): AsyncGenerator<Uint8Array> {
  const isOne = typeof stdin === 'string' || stdin instanceof Uint8Array
  for await (const piece of isOne ? [stdin] : stdin) yield Buffer.from(piece as string)
}

function collector(isTerminal: boolean): { end: StdStream; bytes(): Uint8Array } {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write(chunk: Buffer, _, done) {
      chunks.push(chunk)
      done()
    },
  })
  return { end: { isTerminal, open: () => stream, writeSync: () => 0 }, bytes: () => Buffer.concat(chunks) }
}

/** A clock that runs fast, for runs that wait. */
export const hurried = (times = 50): Host['timers'] => createSteadyClock(times)

/** An exchange that always gives the same answer. */
export function answering(
  body: string | Uint8Array | (string | Uint8Array)[],
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): Exchange {
  return async () => ({
    status,
    statusText: '',
    headers: { 'content-type': 'application/json', ...headers },
    body: pieces(body),
    close() {},
  })
}

/** The documented message shape, saying a text. */
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
