import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startEmulatorServer } from '../../src/emulator/server.ts'
import { realTimers } from '../../src/timers.ts'
import { tryParseJson } from '../../src/wire/json/parse.ts'
import { imageAnswer, inline, png } from '../gateway/image/image.ts'
import { bash } from '../harness/events.ts'
import type { Ended } from '../harness/process.ts'
import { message } from '../harness/run.ts'
import { response, type Script, serve } from '../harness/server.ts'
import { openAgent } from '../harness/session-service.ts'

/** Files of a run's folder. */
export interface RunFiles {
  read(name: string): string | undefined
  names(): string[]
}

/** Service that a run calls. */
interface Service {
  port: number
  env: Record<string, string>
  /** The prompts, tasks and replies that the service received, in order. */
  received(): string[]
  close(): Promise<void> | void
}

export interface RunObservation {
  ended: Ended
  files: RunFiles
  service: Service
}

/** Command that writes files, and the guarantees that hold even if a write fails. */
export interface TortureCase {
  name: string
  argv: string[]
  /** Starts the service on this port, or on a free port if it is 0. */
  serve(port: number): Promise<Service>
  /** Files before the run. */
  before?: Record<string, string>
  /** Arguments that resume after a failure. Default: the same arguments. */
  again?: string[]
  /** Returns whether the work is done. If so, the test skips the next run, which would start new work. */
  isDone?(seen: RunObservation): boolean
  /** Expected exit codes of the next run. Default: 0. */
  nextCodes?: number[]
  /** Throws if the run with the fault broke a guarantee. */
  check(seen: RunObservation): void
  /** Returns the answers in the results file, whose prompts the next run must not send again. */
  listRecordedAnswers?(seen: RunObservation): string[]
  /** Throws if the next run, which has no fault, broke a guarantee. */
  checkNext(seen: RunObservation, recorded: readonly string[]): void
}

const answer = 'the answer'

/** Starts a gateway that answers each prompt with this body. */
async function startGateway(port: number, body: (prompt: string) => string): Promise<Service> {
  const prompts: string[] = []
  const respond: Script = (socket, request) => {
    const texts: { text: string }[] = JSON.parse(request.split('\r\n\r\n')[1] ?? '').contents.at(-1).parts
    const prompt = texts.map(({ text }) => text).join()
    prompts.push(prompt)
    socket.write(response(body(prompt)))
  }
  const server = await serve(respond, { port })
  return { ...server, env: { PARLEY_BASE_URL: server.url }, received: () => prompts }
}

const startChatService = (port: number) => startGateway(port, (prompt) => message(`${answer} to ${prompt}`))

function requireThat(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

/** Throws if a file is incomplete, so that its content is none of the allowed texts. */
const requireOneOf = (content: string | undefined, ...allowed: string[]) =>
  requireThat(content !== undefined && allowed.includes(content), `incomplete: ${JSON.stringify(content)}`)

/** Throws if a received answer is not printed, saved in a file, or reported as lost. */
function requirePaidAnswer({ ended, files, service }: RunObservation): void {
  if (service.received().length === 0 || ended.signal !== null) return
  const texts = [ended.out, ...files.names().map((name) => files.read(name) ?? '')]
  const isReported = /could not be kept|not kept|could not be saved/.test(ended.err)
  requireThat(texts.some((text) => text.includes(answer)) || isReported, 'a paid answer is lost')
}

const turn = (role: string, text: string) => ({ role, parts: [{ text }] })
const conversation = JSON.stringify({ contents: [turn('user', 'one'), turn('model', 'two')] })

const isJson = (text: string) => tryParseJson(text) !== undefined

/** Parses a file of JSON lines. Throws if a line other than the last line is incomplete. */
function parseLines(text: string): Record<string, unknown>[] {
  const lines = text.split('\n')
  if (!isJson(lines.at(-1) ?? '')) lines.pop()
  const whole = lines.filter((line) => line !== '')
  requireThat(whole.every(isJson), 'a line that is not JSON is not the last')
  return whole.map((line) => JSON.parse(line))
}

const prompts = ['p1', 'p2', 'p3', 'p4']

/** Returns the answers in a results file. */
const listAnswers = (text: string | undefined) =>
  parseLines(text ?? '').flatMap((line) => (line.ok === true ? [String(line.text)] : []))

const isExpectedImage = (text = '') => Buffer.from(text, 'latin1').equals(png())

/** Starts a session service whose agent requests two tool uses, one after the other. */
async function startSessionService(port: number): Promise<Service> {
  const service = openAgent({ timers: realTimers, rounds: [[bash('t1')], [bash('t2')]] })
  const { exchange } = service
  const server = await startEmulatorServer({ port, host: '127.0.0.1', exchange, onRequest() {} })
  return {
    port: server.port,
    env: { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}` },
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

/** Path of the profile file in the folder of a run. */
const profileFile = 'home/.config/parley/config.json'

const earlierSettings = { chatModel: 'm1', baseUrl: 'https://one.test' }
const earlierReport = '{"command":"chat","exit":0,"kind":null,"sent":"yes","usage":null}\n'

export const tortureCases: TortureCase[] = [
  {
    name: 'chat -o',
    argv: ['chat', 'hi', '-o', 'out'],
    serve: startChatService,
    before: { 'cwd/out': 'old' },
    check(seen) {
      requireOneOf(seen.files.read('cwd/out'), 'old', `${answer} to hi\n`)
      requirePaidAnswer(seen)
    },
    checkNext: ({ files }) => requireOneOf(files.read('cwd/out'), `${answer} to hi\n`),
  },
  {
    name: 'chat --thread',
    argv: ['chat', 'three', '--thread', 'talk'],
    serve: startChatService,
    before: { 'cwd/talk': conversation },
    check(seen) {
      const { contents } = JSON.parse(seen.files.read('cwd/talk') ?? 'null')
      const isKept = JSON.stringify({ contents: contents.slice(0, 2) }) === conversation
      requireThat(isKept, 'turns are lost')
      requireThat(contents.length === 2 || contents.length === 4, `${contents.length} turns`)
      requirePaidAnswer(seen)
    },
    checkNext({ files }) {
      const { length } = JSON.parse(files.read('cwd/talk') ?? 'null').contents
      requireThat(length >= 4 && length % 2 === 0, `${length} turns after the next run`)
    },
  },
  {
    name: 'image',
    argv: ['image', 'a fox', '-m', 'painter', '-o', 'made/'],
    serve: (port) => startGateway(port, () => imageAnswer(inline(png()))),
    check({ ended, files, service }) {
      const names = files.names().filter((name) => name.endsWith('.png'))
      const isComplete = names.every((name) => isExpectedImage(files.read(name)))
      requireThat(isComplete, 'an image is incomplete')
      const isPaid = service.received().length > 0 && ended.signal === null
      requireThat(!isPaid || names.length > 0 || /could not be/.test(ended.err), 'a paid image is lost')
    },
    checkNext({ files }) {
      const saved = files.names().filter((name) => name.startsWith('cwd/made/'))
      requireThat(
        saved.some((name) => isExpectedImage(files.read(name))),
        'the image is missing',
      )
    },
  },
  {
    name: 'chat --batch --results',
    argv: ['chat', '--batch', 'lines', '--results', 'results', '--concurrency', '1'],
    serve: startChatService,
    before: { 'cwd/lines': prompts.map((prompt) => `${JSON.stringify(prompt)}\n`).join('') },
    again: ['chat', '--batch', 'lines', '--results', 'results', '--resume'],
    check: requirePaidAnswer,
    listRecordedAnswers: ({ files }) => listAnswers(files.read('cwd/results')),
    checkNext({ files, service }, recorded) {
      const answers = listAnswers(files.read('cwd/results'))
      requireThat(new Set(answers).size === prompts.length, 'a line has no result')
      const isTwice = (prompt: string) => service.received().filter((each) => each === prompt).length > 1
      const again = prompts.filter((prompt) => recorded.includes(`${answer} to ${prompt}`)).some(isTwice)
      requireThat(!again, 'a recorded line was requested again')
    },
  },
  {
    name: '--report',
    argv: ['chat', 'hi', '--report', 'report'],
    serve: startChatService,
    before: { 'cwd/report': earlierReport },
    check(seen) {
      const text = seen.files.read('cwd/report')
      requireThat(text === undefined || isJson(text), 'the report is incomplete')
      const { signal, code } = seen.ended
      const exit = text === undefined || text === earlierReport ? code : JSON.parse(text).exit
      requireThat(
        signal !== null || exit === code,
        `the report has exit ${exit}, but the exit code is ${code}`,
      )
      requirePaidAnswer(seen)
    },
    checkNext: ({ files }) =>
      requireThat(JSON.parse(files.read('cwd/report') ?? 'null')?.exit === 0, 'no report'),
  },
  {
    name: 'events run --audit',
    argv: ['events', 'run', '-s', 's1', 'go', '--policy', 'policy', '--audit', 'audit', '--deadline', '20'],
    // If a reply or task may have arrived, parley does not send it again, and the next run exits with 10.
    nextCodes: [0, 10],
    isDone: ({ files }) => (files.read('cwd/audit') ?? '').includes('"event":"done"'),
    serve: startSessionService,
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
    before: { [profileFile]: JSON.stringify({ version: 1, profiles: { default: earlierSettings } }) },
    check({ files }) {
      const { default: kept } = JSON.parse(files.read(profileFile) ?? 'null').profiles
      requireThat(kept.baseUrl === 'https://one.test', 'a setting is lost')
      requireThat(['m1', 'm2'].includes(kept.chatModel), 'a setting has neither its old nor its new value')
    },
    checkNext({ files }) {
      const { default: kept } = JSON.parse(files.read(profileFile) ?? 'null').profiles
      requireThat(kept.chatModel === 'm2' && kept.baseUrl === 'https://one.test', 'the setting is missing')
    },
  },
]

/** Creates the folders and files of a run. Returns access to the files, also to those that the run creates. */
export function prepareFolder(folder: string, before: TortureCase['before'] = {}): RunFiles {
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
