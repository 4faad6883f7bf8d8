import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listen } from '../../src/emulator/listen.ts'
import { png } from '../gateway/image/image.ts'
import { message } from '../harness/run.ts'
import { response, type ScriptedServer, serve } from '../harness/server.ts'
import { createAgentService } from '../sessions/run/agent-service.ts'
import { use } from '../sessions/run/served-agent.ts'
import type { Ended } from './strace.ts'

/** What lies in the folder in which a run works. */
export interface Files {
  read(name: string): string | undefined
  names(): string[]
}

/** A service that a run calls, and what it was asked. */
interface Service {
  port: number
  env: Record<string, string>
  /** The texts of what was asked and answered, in their order. */
  asked(): string[]
  close(): Promise<void> | void
}

export interface Seen {
  ended: Ended
  files: Files
  service: Service
}

/** A run that writes files, and what holds of them however it ends. */
export interface Case {
  name: string
  argv: string[]
  /** On a port, or on any if it is 0: the names of some files are made of it. */
  serve(port: number): Promise<Service>
  /** What lies there before. */
  before?: Record<string, string>
  /** How the work goes on after a failure; the same words by default. */
  again?: string[]
  /** Whether nothing is left to go on with, so that the same line would be new work. */
  isOver?(seen: Seen): boolean
  /** Its exit codes; 0 if not given. */
  nextCodes?: number[]
  /** Throws if a promise is broken after the blow. */
  check(seen: Seen): void
  /** The answers that are recorded after the blow: what they answer is not to be asked again. */
  recordedIn?(seen: Seen): string[]
  /** Throws if a promise is broken after the next run, which meets no blow. */
  checkNext(seen: Seen, recorded: readonly string[]): void
}

const answer = 'the answer'

/** A gateway that answers a prompt with a text that names it. */
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
    asked: () => prompts,
    close: () => server.close(),
  }
}

const chatting = (port: number) => gateway(port, (prompt) => message(`${answer} to ${prompt}`))

function demand(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what)
}

/** Whole under its name, as it was or as it is to be; never anything between. */
const oldOrNew = (found: string | undefined, ...allowed: (string | undefined)[]) =>
  demand(allowed.includes(found), `between old and new: ${JSON.stringify(found)}`)

/** What was paid for is printed, kept in some file, or told to be lost. */
function paidIsKept({ ended, files, service }: Seen): void {
  if (service.asked().length === 0 || ended.signal !== null) return
  const texts = [ended.out, ...files.names().map((name) => files.read(name) ?? '')]
  const isTold = /could not be kept|not kept|could not be saved/.test(ended.err)
  demand(texts.some((text) => text.includes(answer)) || isTold, 'a paid answer is gone')
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

/** The lines of a file; the last one may be torn. */
function wholeLines(text: string): Record<string, unknown>[] {
  const lines = text.split('\n')
  const torn = lines.pop() ?? ''
  demand(
    lines.every((line) => line === '' || isJson(line)),
    'a line that is not JSON is not the last',
  )
  return [...lines, ...(isJson(torn) ? [torn] : [])]
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

const prompts = ['p1', 'p2', 'p3', 'p4']

const results = (text: string | undefined) =>
  wholeLines(text ?? '').filter((line) => line.ok === true) as { text: string }[]

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

/** An agent that asks for two tool uses, one after the other. */
async function agent(port: number): Promise<Service> {
  const service = createAgentService({ rounds: [[use('t1')], [use('t2')]] })
  const server = await listen({ port, host: '127.0.0.1', exchange: service.exchange, onRequest() {} })
  return {
    port: server.port,
    env: { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}`, PARLEY_API_KEY: 'key' },
    asked: () => [
      ...Array.from({ length: service.tasks }, () => 'the task'),
      ...[...service.taken].flatMap(([id, replies]) => replies.map(() => id)),
    ],
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Where the profiles lie in a run's home. */
const profiles = 'home/.config/parley/config.json'

const earlier = '{"command":"chat","exit":0,"kind":null,"sent":"yes","usage":null}\n'

export const cases: Case[] = [
  {
    name: 'chat -o',
    argv: ['chat', 'hi', '-o', 'out'],
    serve: chatting,
    before: { 'cwd/out': 'old' },
    check(seen) {
      oldOrNew(seen.files.read('cwd/out'), 'old', `${answer} to hi\n`)
      paidIsKept(seen)
    },
    checkNext: ({ files }) => oldOrNew(files.read('cwd/out'), `${answer} to hi\n`),
  },
  {
    name: 'chat --thread',
    argv: ['chat', 'three', '--thread', 'talk'],
    serve: chatting,
    before: { 'cwd/talk': conversation },
    check(seen) {
      const { contents } = JSON.parse(seen.files.read('cwd/talk') ?? 'null')
      demand(
        JSON.stringify(contents.slice(0, 2)) === JSON.stringify(JSON.parse(conversation).contents),
        'turns are lost',
      )
      demand(contents.length === 2 || contents.length === 4, `${contents.length} turns`)
      paidIsKept(seen)
    },
    checkNext({ files }) {
      const { contents } = JSON.parse(files.read('cwd/talk') ?? 'null')
      demand(contents.length >= 4 && contents.length % 2 === 0, `${contents.length} turns after the next run`)
    },
  },
  {
    name: 'image',
    argv: ['image', 'a fox', '-m', 'painter', '-o', 'made/'],
    serve: (port) => gateway(port, () => image),
    check({ ended, files, service }) {
      const names = files.names().filter((name) => name.endsWith('.png'))
      demand(
        names.every((name) => isPicture(files.read(name))),
        'a picture is not whole',
      )
      const isPaid = service.asked().length > 0 && ended.signal === null
      demand(!isPaid || names.length > 0 || /could not be/.test(ended.err), 'a paid picture is gone')
    },
    checkNext: ({ files }) =>
      demand(
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
      paidIsKept(seen)
    },
    recordedIn: ({ files }) => results(files.read('cwd/results')).map(({ text }) => text),
    checkNext({ files, service }, recorded) {
      const texts = results(files.read('cwd/results')).map(({ text }) => text)
      demand([...new Set(texts)].length === prompts.length, 'a line has no result')
      const twice = prompts.filter((prompt) => service.asked().filter((asked) => asked === prompt).length > 1)
      demand(
        !twice.some((prompt) => recorded.includes(`${answer} to ${prompt}`)),
        'a recorded line was asked again',
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
      demand(text === undefined || isJson(text), 'half a report')
      const { signal, code } = seen.ended
      const exit = text === undefined ? undefined : JSON.parse(text).exit
      const isOld = text === earlier
      demand(
        signal !== null || isOld || exit === undefined || exit === code,
        `the report says ${exit}, the run ${code}`,
      )
      paidIsKept(seen)
    },
    checkNext: ({ files }) => demand(JSON.parse(files.read('cwd/report') ?? 'null')?.exit === 0, 'no report'),
  },
  {
    name: 'events run --audit',
    argv: ['events', 'run', '-s', 's1', 'go', '--policy', 'policy', '--audit', 'audit', '--deadline', '20'],
    // What was begun and is not known to have arrived is left to a person.
    nextCodes: [0, 10],
    isOver: ({ files }) => (files.read('cwd/audit') ?? '').includes('"event":"done"'),
    serve: agent,
    before: { 'cwd/policy': '{"rules":[],"default":{"decision":"allow"}}' },
    check: ({ files }) => void wholeLines(files.read('cwd/audit') ?? ''),
    checkNext({ files, service }) {
      wholeLines(files.read('cwd/audit') ?? '')
      const all = service.asked()
      demand(new Set(all).size === all.length, `sent twice: ${all.join()}`)
    },
  },
  {
    name: 'config set',
    argv: ['config', 'set', 'chatModel', 'm2'],
    serve: async () => ({ port: 0, env: {}, asked: () => [], close() {} }),
    before: {
      [profiles]: JSON.stringify({
        version: 1,
        profiles: { default: { chatModel: 'm1', baseUrl: 'https://one.test' } },
      }),
    },
    check({ files }) {
      const { default: kept } = JSON.parse(files.read(profiles) ?? 'null').profiles
      demand(kept.baseUrl === 'https://one.test', 'a setting is lost')
      demand(['m1', 'm2'].includes(kept.chatModel), 'a setting is neither old nor new')
    },
    checkNext({ files }) {
      const { default: kept } = JSON.parse(files.read(profiles) ?? 'null').profiles
      demand(kept.chatModel === 'm2' && kept.baseUrl === 'https://one.test', 'not set')
    },
  },
]

/** Makes a run's folders, and what lies there before. */
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
