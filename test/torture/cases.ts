import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmulatorServer } from '../../src/emulator/listen.ts'
import { png } from '../gateway/image/image.ts'
import { message } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { bash } from '../harness/session-service.ts'
import { createAgentService } from '../sessions/run/agent-service.ts'
import type { Ended } from './strace.ts'

/** Files of a run's folder. */
export interface Files {
  read(name: string): string | undefined
  names(): string[]
}

/** A service that a run calls, with its requests. */
interface Service {
  port: number
  env: Record<string, string>
  /** The prompts, tasks and replies that the service received, in order. */
  received(): string[]
  close(): Promise<void> | void
}

export interface Observation {
  ended: Ended
  files: Files
  service: Service
}

/** A run that writes files, and the guarantees that hold even if it fails. */
export interface Case {
  name: string
  argv: string[]
  /** Serves on a port, or on any free port if it is 0. Some file names contain the port. */
  serve(port: number): Promise<Service>
  /** Files before the run. */
  before?: Record<string, string>
  /** Arguments that resume after a failure. Default: the same arguments. */
  again?: string[]
  /** Returns true if nothing is left to resume, so that the same command would start new work. */
  isOver?(seen: Observation): boolean
  /** Expected exit codes of the next run. Default: 0. */
  nextCodes?: number[]
  /** Throws if the run broke a guarantee. */
  check(seen: Observation): void
  /** Returns the recorded answers. Their prompts must not be sent again. */
  recordedIn?(seen: Observation): string[]
  /** Throws if the next run, which has no fault, breaks a guarantee. */
  checkNext(seen: Observation, recorded: readonly string[]): void
}

const answer = 'the answer'

/** Creates a gateway that answers a prompt with a text that contains it. */
async function gateway(port: number, body: (prompt: string) => string): Promise<Service> {
  const prompts: string[] = []
  const server: ScriptedServer = await serve(
    (socket, request) => {
      const texts = JSON.parse(request.slice(request.indexOf('\r\n\r\n') + 4)).contents.at(-1).parts
      const prompt = texts.map(({ text }: { text: string }) => text).join()
      prompts.push(prompt)
      socket.write(response(body(prompt)))
    },
    { port },
  )
  return {
    port: server.port,
    env: { PARLEY_BASE_URL: server.url, PARLEY_ACCESS_TOKEN: 'token' },
    received: () => prompts,
    close: () => server.close(),
  }
}

const chatting = (port: number) => gateway(port, (prompt) => message(`${answer} to ${prompt}`))

function requireThat(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

/** Checks that a file is complete: either the old content or the new one. */
const requireOldOrNew = (found: string | undefined, ...allowed: (string | undefined)[]) =>
  requireThat(allowed.includes(found), `between old and new: ${JSON.stringify(found)}`)

/** Checks that a paid answer is printed, saved in a file, or reported as lost. */
function checkPaidAnswer({ ended, files, service }: Observation): void {
  if (service.received().length === 0 || ended.signal !== null) return
  const texts = [ended.out, ...files.names().map((name) => files.read(name) ?? '')]
  const isReported = /could not be kept|not kept|could not be saved/.test(ended.err)
  requireThat(texts.some((text) => text.includes(answer)) || isReported, 'a paid answer is gone')
}

const conversation = JSON.stringify({
  contents: [
    { role: 'user', parts: [{ text: 'one' }] },
    { role: 'model', parts: [{ text: 'two' }] },
  ],
})

const isJson = (text: string) => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Returns the lines of a file. The last line may be incomplete. */
function parseLines(text: string): Record<string, unknown>[] {
  const lines = text.split('\n')
  const torn = lines.pop() ?? ''
  requireThat(
    lines.every((line) => line === '' || isJson(line)),
    'a line that is not JSON is not the last',
  )
  return [...lines, ...(isJson(torn) ? [torn] : [])]
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const prompts = ['p1', 'p2', 'p3', 'p4']

const results = (text: string | undefined) =>
  parseLines(text ?? '').filter((line) => line.ok === true) as { text: string }[]

const image = JSON.stringify({
  candidates: [
    {
      content: { parts: [{ inlineData: { mimeType: 'image/png', data: png().toString('base64') } }] },
      finishReason: 'STOP',
    },
  ],
})

const isPicture = (text: string | undefined) =>
  text !== undefined && Buffer.from(text, 'latin1').equals(png())

/** Serves an agent that requests two tool uses, one after the other. */
async function agent(port: number): Promise<Service> {
  const service = createAgentService({ rounds: [[bash('t1')], [bash('t2')]] })
  const server = await startEmulatorServer({
    port,
    host: '127.0.0.1',
    exchange: service.exchange,
    onRequest() {},
  })
  return {
    port: server.port,
    env: { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}`, PARLEY_API_KEY: 'key' },
    received: () => [
      ...Array.from({ length: service.tasks }, () => 'the task'),
      ...[...service.acceptedReplies].flatMap(([id, replies]) => replies.map(() => id)),
    ],
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Path of the profile file in a run's folder. */
const profiles = 'home/.config/parley/config.json'

const earlier = '{"command":"chat","exit":0,"kind":null,"sent":"yes","usage":null}\n'

export const cases: Case[] = [
  {
    name: 'chat -o',
    argv: ['chat', 'hi', '-o', 'out'],
    serve: chatting,
    before: { 'cwd/out': 'old' },
    check(seen) {
      requireOldOrNew(seen.files.read('cwd/out'), 'old', `${answer} to hi\n`)
      checkPaidAnswer(seen)
    },
    checkNext: ({ files }) => requireOldOrNew(files.read('cwd/out'), `${answer} to hi\n`),
  },
  {
    name: 'chat --thread',
    argv: ['chat', 'three', '--thread', 'talk'],
    serve: chatting,
    before: { 'cwd/talk': conversation },
    check(seen) {
      const { contents } = JSON.parse(seen.files.read('cwd/talk') ?? 'null')
      requireThat(
        JSON.stringify(contents.slice(0, 2)) === JSON.stringify(JSON.parse(conversation).contents),
        'turns are lost',
      )
      requireThat(contents.length === 2 || contents.length === 4, `${contents.length} turns`)
      checkPaidAnswer(seen)
    },
    checkNext({ files }) {
      const { contents } = JSON.parse(files.read('cwd/talk') ?? 'null')
      requireThat(
        contents.length >= 4 && contents.length % 2 === 0,
        `${contents.length} turns after the next run`,
      )
    },
  },
  {
    name: 'image',
    argv: ['image', 'a fox', '-m', 'painter', '-o', 'made/'],
    serve: (port) => gateway(port, () => image),
    check({ ended, files, service }) {
      const names = files.names().filter((name) => name.endsWith('.png'))
      requireThat(
        names.every((name) => isPicture(files.read(name))),
        'a picture is not whole',
      )
      const isPaid = service.received().length > 0 && ended.signal === null
      requireThat(!isPaid || names.length > 0 || /could not be/.test(ended.err), 'a paid picture is gone')
    },
    checkNext: ({ files }) =>
      requireThat(
        files.names().some((name) => name.startsWith('cwd/made/') && isPicture(files.read(name))),
        'no picture',
      ),
  },
  {
    name: 'chat --batch --results',
    argv: ['chat', '--batch', 'lines', '--results', 'results', '--concurrency', '1'],
    serve: chatting,
    before: { 'cwd/lines': prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join('') },
    again: ['chat', '--batch', 'lines', '--results', 'results', '--resume'],
    check(seen) {
      checkPaidAnswer(seen)
    },
    recordedIn: ({ files }) => results(files.read('cwd/results')).map(({ text }) => text),
    checkNext({ files, service }, recorded) {
      const texts = results(files.read('cwd/results')).map(({ text }) => text)
      requireThat([...new Set(texts)].length === prompts.length, 'a line has no result')
      const twice = prompts.filter(
        (prompt) => service.received().filter((received) => received === prompt).length > 1,
      )
      requireThat(
        !twice.some((prompt) => recorded.includes(`${answer} to ${prompt}`)),
        'a recorded line was requested again',
      )
    },
  },
  {
    name: '--report',
    argv: ['chat', 'hi', '--report', 'report'],
    serve: chatting,
    before: { 'cwd/report': earlier },
    check(seen) {
      const text = seen.files.read('cwd/report')
      requireThat(text === undefined || isJson(text), 'half a report')
      const { signal, code } = seen.ended
      const exit = text === undefined ? undefined : JSON.parse(text).exit
      const isOld = text === earlier
      requireThat(
        signal !== null || isOld || exit === undefined || exit === code,
        `the report says ${exit}, the run ${code}`,
      )
      checkPaidAnswer(seen)
    },
    checkNext: ({ files }) =>
      requireThat(JSON.parse(files.read('cwd/report') ?? 'null')?.exit === 0, 'no report'),
  },
  {
    name: 'events run --audit',
    argv: ['events', 'run', '-s', 's1', 'go', '--policy', 'policy', '--audit', 'audit', '--deadline', '20'],
    // A reply or task of unknown delivery is left to a person.
    nextCodes: [0, 10],
    isOver: ({ files }) => (files.read('cwd/audit') ?? '').includes('"event":"done"'),
    serve: agent,
    before: { 'cwd/policy': '{"rules":[],"default":{"decision":"allow"}}' },
    check: ({ files }) => void parseLines(files.read('cwd/audit') ?? ''),
    checkNext({ files, service }) {
      parseLines(files.read('cwd/audit') ?? '')
      const all = service.received()
      requireThat(new Set(all).size === all.length, `sent twice: ${all.join()}`)
    },
  },
  {
    name: 'config set',
    argv: ['config', 'set', 'chatModel', 'm2'],
    serve: async () => ({ port: 0, env: {}, received: () => [], close() {} }),
    before: {
      [profiles]: JSON.stringify({
        version: 1,
        profiles: { default: { chatModel: 'm1', baseUrl: 'https://one.test' } },
      }),
    },
    check({ files }) {
      const { default: kept } = JSON.parse(files.read(profiles) ?? 'null').profiles
      requireThat(kept.baseUrl === 'https://one.test', 'a setting is lost')
      requireThat(['m1', 'm2'].includes(kept.chatModel), 'a setting is neither old nor new')
    },
    checkNext({ files }) {
      const { default: kept } = JSON.parse(files.read(profiles) ?? 'null').profiles
      requireThat(kept.chatModel === 'm2' && kept.baseUrl === 'https://one.test', 'not set')
    },
  },
]

/** Creates the folders and files of a run. */
export function prepare(folder: string, before: Case['before'] = {}): Files {
  for (const name of ['cwd', 'home', 'tmp']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
  for (const [name, text] of Object.entries(before)) {
    mkdirSync(join(folder, name, '..'), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, name), text, { mode: 0o600 })
  }
  return {
    read: (name) => (existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'latin1') : undefined),
    names: () =>
      ['cwd', 'home', 'tmp'].flatMap((place) =>
        readdirSync(join(folder, place), { recursive: true, withFileTypes: true, encoding: 'utf8' })
          .filter((entry) => entry.isFile())
          .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1)),
      ),
  }
}
