import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { meetsRequirement } from '../harness/needs.ts'
import { type Script, type ScriptedServer, type ServeOptions, serve } from '../harness/server.ts'
import { isInShare } from '../harness/share.ts'
import type { Certificate } from './certificates.ts'
import { runInside, unmapNames } from './inside.ts'
import {
  canaries,
  type Ending,
  type Launch,
  launch,
  makeFolders,
  type RunningCommand,
  removeFolder,
} from './launch.ts'
import { type Fault, listFaults, removeFault } from './proof.ts'
import { checkRetries, runWithRetries } from './wrapper.ts'

/** One row of the fault matrix: a command, its fault, and the expected result. */
export interface Row extends Partial<Launch> {
  /** Starts with the row's id. */
  name: string
  /** Answers each request. If omitted, the server closes every connection. */
  script?: Script
  listen?: Omit<ServeOptions, 'tls'> & { tls?: () => Certificate }
  /** Base URL; defaults to the server's address. */
  url?(server: ScriptedServer): string
  /** Environment variables that depend on the server. */
  envOf?(server: ScriptedServer): Record<string, string>
  /** Fills the run's folder before it starts. */
  prepare?(folder: string): void
  /**
   * Signal for the run, and the phase in which it is sent. In the phase `file`, a file of the working folder
   * has content.
   */
  signal?: {
    name: NodeJS.Signals
    at: 'connection' | 'request' | 'out' | 'err' | 'file'
    again?: boolean
    toGroup?: boolean
  }

  /** Expected exit code; a list if several are correct. */
  code: Code | readonly Code[]
  /** Expected stdout, byte for byte; a predicate for long output. */
  out?: string | Uint8Array | ((out: Buffer) => boolean)
  /** Texts that stderr contains. */
  err?: (string | RegExp)[]
  /** Number of complete requests and of connections; `conns` defaults to `reqs`. */
  reqs?: number
  conns?: number | readonly number[]
  /** Files that remain in `home`, `cwd` and `tmp`. */
  files?: string[]
  /** Minimum duration in seconds. There is no maximum, because a slow machine must not fail a test. */
  atLeast?: number
  /** Maximum memory in MiB. */
  memory?: number
  /** True if stdout contains the response as received, secrets included. */
  isRaw?: boolean
  /** True if stderr is a log, whose lines start with a timestamp. */
  isLog?: boolean
  /** True if the row needs a separate process and no other field implies it. */
  isProcess?: boolean
  /** Runs at the same time as the command. */
  during?(command: RunningCommand, server: ScriptedServer): Promise<void>
  /** Reason why the row also passes without its fault (`npm run proof:faults`). */
  either?: string
  check?(seen: { ending: Ending; server: ScriptedServer }): void
}

type Code = Ending['code']

/**
 * Runs the rows of a group against the built command. A row runs in this process, unless it needs a separate
 * one. A separate process also shows that all output is written, that nothing keeps it alive, and that it
 * exits with the code of main().
 * `npm run test:all` also runs the first row of each id in a process, and repeats failing rows as a wrapper
 * script would.
 */
export const faults = (group: string, rows: readonly Row[]): void =>
  runRows(group, rows, ({ name }) => /^[A-Z]+\d+/.exec(name)?.[0] ?? name)

/**
 * Runs rows that differ only in the network input. `npm run test:all` starts one process for each command and
 * exit code.
 */
export const faultsInside = (group: string, rows: readonly Row[]): void =>
  runRows(group, rows, ({ argv = chat, code }) =>
    [argv[0], argv[0] === 'events' && argv[1], argv.includes('--stream'), code].join(),
  )

/** Runs the rows. `npm run test:all` also runs the first row of each sort in a separate process. */
function runRows(group: string, rows: readonly Row[], getSort: (row: Row) => string): void {
  if (process.env.TEST_PROOF || !process.env.TEST_ALL) {
    faultsOnce(group, rows)
    return
  }
  const sorts = new Set(rows.filter(needsProcess).map(getSort))
  const firsts = rows.filter((row) => {
    const sort = getSort(row)
    return !sorts.has(sort) && sorts.add(sort)
  })
  if (firsts.length > 0) faultsOnce(group, firsts, run)
  const failing = rows.filter((row) => row.code !== 0 && !needsProcess(row))
  if (failing.length > 0) faultsOnce(`${group}, repeated by a wrapper script`, failing, runWrapped)
}

/** Runs each row once. Heavy tests call this directly. */
export function faultsOnce(group: string, rows: readonly Row[], how?: typeof run): void {
  if (process.env.TEST_PROOF) {
    proveRows(group, rows)
    return
  }
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of rows) {
      const missing = listNeeds(row).find((need) => !meetsRequirement(need))
      const act = how ?? (needsProcess(row) ? run : runWithin)
      test(missing ? `${row.name} (needs ${missing})` : row.name, () => act(row))
    }
  })
}

/** Repeats each row without its fault. Fails if a row still passes and gives no reason. */
function proveRows(group: string, rows: readonly Row[]): void {
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of inShare(rows)) {
      const missing = listNeeds(row).find((need) => !meetsRequirement(need))
      test(missing ? `${row.name} (needs ${missing})` : row.name, async ({ task }) => {
        const proof = await prove(row)
        task.meta.proof = proof
        expect(proof.verdict, 'the row passes without its fault').not.toBe('passes')
      })
    }
  })
}

/** The result is never empty, because vitest fails for a group without tests. */
function inShare(rows: readonly Row[]): readonly Row[] {
  const taken = rows.filter(({ name }) => isInShare(name))
  return taken.length > 0 ? taken : rows.slice(0, 1)
}

declare module 'vitest' {
  interface TaskMeta {
    proof?: Proof
  }
}

/**
 * Result of repeating a row without its fault.
 * - `bites`: the row fails.
 * - `tolerates`: the row passes, and fails with another answer. So parley reads the answer, and the fault
 *   changes nothing.
 * - `either`: the row passes and gives the reason.
 * - `passes`: the row proves nothing.
 */
interface Proof {
  verdict: 'bites' | 'tolerates' | 'either' | 'passes'
  fault?: Fault
  either?: string
}

async function prove(row: Row): Promise<Proof> {
  for (const fault of listFaults(row))
    if (await fails(removeFault(row, fault))) return { verdict: 'bites', fault }
  if (row.either !== undefined) return { verdict: 'either', either: row.either }
  const isRead = row.script !== undefined && (await fails(removeFault(row, 'service', 'something else')))
  return { verdict: isRead ? 'tolerates' : 'passes' }
}

/** Returns whether the row fails or does not end in time. */
async function fails(row: Row): Promise<boolean> {
  const act = needsProcess(row) ? run : runWithin
  const late = pause(15_000).then(() => true)
  return Promise.race([
    late,
    act(row).then(
      () => false,
      () => true,
    ),
  ])
}

/** Extra memory allowed on Node above 20, in MiB. Node 24 used 10 more. */
const extraMiB = process.versions.node.startsWith('20.') ? 0 : 20

/** Returns the programs and features that a row requires. */
const listNeeds = ({ shell = '', signal }: Row): string[] => [
  ...(shell === '' ? [] : ['sh']),
  ...(signal ? ['signals'] : []),
  ...['/dev/full', 'script', 'unshare', 'python3'].filter((need) => shell.includes(need)),
]

/** Returns whether the row involves a shell, a signal, a memory limit or Node's own environment. */
const needsProcess = ({ shell, signal, during, memory, env = {}, isProcess = false }: Row): boolean =>
  isProcess ||
  [shell, signal, during, memory].some((need) => need !== undefined) ||
  Object.keys(env).some((name) => name.startsWith('NODE_'))

interface Stage {
  server: ScriptedServer
  folder: string
  argv: string[]
  env: Record<string, string>
}

async function setUp(row: Row): Promise<Stage> {
  const { tls, ...listen } = row.listen ?? {}
  const refuse: Script = (socket) => void socket.destroy()
  const server = await serve(row.script ?? refuse, { ...listen, ...(tls ? { tls: tls() } : {}) })
  const folder = makeFolders()
  row.prepare?.(folder)
  const url = row.url?.(server) ?? server.url
  const env = { PARLEY_BASE_URL: url, PARLEY_AGENTS_URL: url, ...row.envOf?.(server), ...row.env }
  return { server, folder, argv: row.argv ?? chat, env }
}

async function runWithin(row: Row): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  try {
    const ending = await runInside({ ...row, argv, env }, folder)
    // An open connection would keep a process alive. A server with `onConnection` does not read and never
    // sees the end.
    while (!row.listen?.onConnection && server.sockets.size > 0) await pause(5)
    check(row, ending, server)
    row.check?.({ ending, server })
  } finally {
    await server.close()
  }
}

/** Runs a row as a wrapper script would: `retry` decides whether the command is repeated. */
async function runWrapped(row: Row): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  const jsonArgv = argv.includes('--errors') ? argv : ['--errors', 'json', ...argv]
  let next = folder
  const once = async () => {
    const ending = await runInside({ ...row, argv: jsonArgv, env }, next)
    next = makeFolders()
    row.prepare?.(next)
    return ending
  }
  try {
    checkRetries(argv, await runWithRetries(once, server))
  } finally {
    removeFolder(next)
    await server.close()
  }
}

/**
 * Maximum number of concurrent processes. Proofs have no limit, because a wait for a slot would count against
 * their time.
 */
const maxProcesses = process.env.TEST_PROOF ? Infinity : 5
let processes = 0
const queue: (() => void)[] = []

async function run(row: Row): Promise<void> {
  if (processes < maxProcesses) processes++
  else await new Promise<void>((resolve) => queue.push(resolve))
  try {
    await runProcess(row)
  } finally {
    const next = queue.shift()
    if (next) next()
    else processes--
  }
}

async function runProcess(row: Row): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  const command = launch({ ...row, argv, env }, folder)
  try {
    if (row.signal) await interrupt(command, server, row.signal)
    const [ending] = await Promise.all([command.ended, row.during?.(command, server)])
    // The requests have arrived, but this process may not have read them yet.
    await pause(0)
    check(row, ending, server)
    row.check?.({ ending, server })
  } finally {
    command.child.kill('SIGKILL')
    await command.ended
    await server.close()
  }
}

async function interrupt(
  command: RunningCommand,
  server: ScriptedServer,
  { name, at, again, toGroup }: NonNullable<Row['signal']>,
): Promise<void> {
  const isReached = {
    connection: () => server.connections > 0,
    request: () => server.requests.length > 0,
    out: () => command.out().length > 0,
    err: () => command.err() !== '',
    file: () => readdirSync(command.cwd).some((name) => statSync(join(command.cwd, name)).size > 0),
  }[at]
  while (!isReached() && command.child.exitCode === null) await pause(10)
  // The signal must arrive during the phase, not at its start.
  await pause(100)
  if (toGroup) process.kill(-(command.child.pid as number), name)
  else command.child.kill(name)
  if (again) command.child.kill(name)
  await command.ended
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Checks the invariants of the fault matrix and the row's expectations. */
function check(row: Row, ending: Ending, server: ScriptedServer): void {
  const { code, reqs = 0, conns = reqs, out = '', files = [] } = row
  const isExpected =
    typeof out === 'function' ? out(ending.out) : ending.out.equals(Buffer.from(out as string))
  const shown = ending.out.subarray(0, 2000).toString()
  const counted = { code: ending.code, reqs: server.requests.length, conns: server.connections }
  expect(counted, ending.err + shown).toEqual({ code: oneOf(code), reqs, conns: oneOf(conns) })
  expect(isExpected, `stdout: ${shown}\nstderr: ${ending.err}`).toBe(true)
  const [saved, others] = [true, false].map((is) =>
    [...ending.files.keys()].filter((name) => isSavedAnswer(name) === is),
  )
  expect(others).toEqual(files)
  for (const name of saved ?? []) expect(ending.err).toContain(name.replace('tmp/', ''))
  const missing = (row.err ?? []).filter((text) => !asPattern(text).test(ending.err))
  expect(missing, ending.err).toEqual([])
  expect(ending.seconds).toBeGreaterThanOrEqual(row.atLeast ?? 0)
  if (row.memory) expect(ending.memory).toBeLessThan(row.memory + extraMiB)
  checkStderr(ending.err, row.isLog)
  const texts = [ending.err, ...ending.files.values(), ...(row.isRaw ? [] : [ending.out.toString('latin1')])]
  for (const canary of Object.values(canaries)) {
    for (const text of texts) expect(text).not.toContain(canary)
  }
}

/** Returns whether a file is an answer that parley saved. Stderr must contain its name. */
const isSavedAnswer = (name: string) => /^tmp\/parley-[\w-]{36}\.(json|txt)$/.test(name)

const oneOf = <T>(expected: T | readonly T[]) =>
  Array.isArray(expected) ? expect.toSatisfy((value) => expected.includes(value)) : expected

const asPattern = (text: string | RegExp) =>
  typeof text === 'string' ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : text

/**
 * Rejects control bytes except newline, stack traces, and remote text at the start of a line, where CI
 * systems look for commands.
 */
function checkStderr(err: string, isLog = false): void {
  expect(err).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  expect(err).not.toMatch(/^\s+at |node:internal|undici|undefined|\[object/m)
  const starts = isLog
    ? /^(parley: | {2}\S|\d{4}-\d\d-\d\dT)/
    : /^(parley: | {2}\S|[<>] |— |\{"(error|warning)":)/
  const lines = err.split('\n').slice(0, -1)
  expect(lines.filter((line) => !starts.test(line))).toEqual([])
  expect(err === '' || err.endsWith('\n')).toBe(true)
}

export const chat = ['chat', 'hi']
export const stream = ['chat', 'hi', '--stream']
export const events = ['events', 'send', 'hi']

/** A stream with some text and no end. */
export const endsEarly = {
  argv: stream,
  code: 8,
  reqs: 1,
  out: 'so far\n',
  err: ['the stream ended early'],
} satisfies Partial<Row>

/** Returns the same row for `chat` and for `events send`. */
export const chatAndEvents = (row: Omit<Row, 'argv'> & { flags?: string[] }): Row[] =>
  [chat, events].map((argv) => ({
    ...(argv === chat && row.code === 0 ? { out: 'ok\n' } : {}),
    ...row,
    name: `${row.name} (${argv[0]})`,
    argv: [...argv, ...(row.flags ?? [])],
  }))
