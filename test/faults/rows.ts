import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { meetsRequirement } from '../harness/needs.ts'
import { type Script, type ScriptedServer, type ServeOptions, serve } from '../harness/server.ts'
import { isInProofShare } from '../harness/share.ts'
import { okOutput, okResponse, respondWith, sendOutput, sendResponse } from './answers.ts'
import { runInProcess, unmapNames } from './inside.ts'
import type { CommandResult, LaunchOptions, RunningCommand } from './launch.ts'
import { canarySecrets, launchParley, makeRunFolder, pause } from './launch.ts'
import { type FaultSource, listFaultSources, removeFault } from './proof.ts'

/** One row of README.md: a command, its fault, and the expected result. */
export interface FaultRow extends Partial<LaunchOptions> {
  /** Title of the test: the id of the fault, a colon, and the rule. */
  name: string
  /** Answers each request. If omitted, the server closes every connection. */
  script?: Script
  listen?: ServeOptions
  /** Base URL of both services. Default: the address of the server. */
  url?(server: ScriptedServer): string
  /** Environment variables that depend on the server. */
  envOf?(server: ScriptedServer): Record<string, string>
  /** Writes files into the folder of the run before the start. */
  prepare?(folder: string): void
  /**
   * Signal for the run. It is sent once the server has a connection or a request, stdout or stderr has
   * output, or a file of the working folder has content.
   */
  signal?: {
    name: NodeJS.Signals
    at: 'connection' | 'request' | 'out' | 'err' | 'file'
    again?: boolean
    toGroup?: boolean
  }

  /** Expected exit code, or a list of codes that are all correct. */
  code: Code | readonly Code[]
  /** Expected bytes of stdout, or a predicate. Default: empty. */
  out?: string | Uint8Array | ((out: Buffer) => boolean)
  /** Texts and patterns that stderr must contain. */
  err?: (string | RegExp)[]
  /** Number of complete requests (default: one if there is a script), and of connections (one per request). */
  reqs?: number
  conns?: number
  /** Files that remain in the folders `home`, `cwd` and `tmp` of the run. Default: none. */
  files?: string[]
  /** Minimum duration. There is no maximum, because a slow machine must not fail a test. */
  minSeconds?: number
  /** Maximum memory. */
  maxMiB?: number
  /** True if the row needs a separate process for a reason that no other field shows. */
  isProcess?: boolean
  /** Runs at the same time as the command, for example to send a signal after a certain output. */
  during?(command: RunningCommand, server: ScriptedServer): Promise<void>
  /** Reason why the row also passes without its fault (`npm run proof:faults`). */
  either?: string
  check?(seen: { ending: CommandResult; server: ScriptedServer }): void
}

type Code = CommandResult['code']

/**
 * Tests each row in this process, or in a separate process if the row needs one. `npm run test:all` also
 * tests the first row of each id in a separate process. Only a process shows that all output is written, that
 * nothing keeps the process alive, and that its exit code is the code of main().
 */
export const testFaults = (group: string, rows: readonly FaultRow[]): void =>
  runRows(group, rows, ({ name }) => /^[A-Z]+\d+/.exec(name)?.[0] ?? name)

/**
 * Tests rows that differ only in the bytes that the server sends. So `npm run test:all` starts a separate
 * process for each command and exit code, and not for each id.
 */
export const testNetworkFaults = (group: string, rows: readonly FaultRow[]): void =>
  runRows(group, rows, ({ argv = chatArgv, code }) =>
    [argv[0], argv[0] === 'events' && argv[1], argv.includes('--stream'), code].join(),
  )

/** Tests the rows, or with `npm run test:all` only the first row of each sort, in a separate process. */
function runRows(group: string, rows: readonly FaultRow[], getSort: (row: FaultRow) => string): void {
  if (process.env.TEST_PROOF || !process.env.TEST_ALL) {
    testFaultsOnce(group, rows)
    return
  }
  const sorts = new Set(rows.filter(needsProcess).map(getSort))
  const firsts = rows.filter((row) => {
    const sort = getSort(row)
    return !sorts.has(sort) && sorts.add(sort)
  })
  const separate = firsts.map((row) => ({ ...row, name: `${row.name} (in a separate process)` }))
  if (separate.length > 0) testFaultsOnce(group, separate, runInSlot)
}

/** Tests each row once. Heavy tests call this function directly, because their rows take long. */
export function testFaultsOnce(group: string, rows: readonly FaultRow[], how?: typeof runInSlot): void {
  if (process.env.TEST_PROOF) {
    proveRows(group, rows)
    return
  }
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of rows) test(createTitle(row), () => (how ?? chooseRun(row))(row))
  })
}

/**
 * Returns the title of a row. If this system lacks a requirement, the title names the requirement, which
 * skips the test.
 */
function createTitle(row: FaultRow): string {
  const missing = listNeeds(row).find((need) => !meetsRequirement(need))
  return missing ? `${row.name} (needs ${missing})` : row.name
}

/** Repeats each row without its fault. A row that still passes proves nothing, so its test then fails. */
function proveRows(group: string, rows: readonly FaultRow[]): void {
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of selectProofShare(rows))
      test(createTitle(row), async ({ task }) => {
        const proof = await prove(row)
        task.meta.proof = proof
        expect(proof.verdict, 'the row passes without its fault').not.toBe('passes')
      })
  })
}

/** Returns the rows of this part of the proof, or the first row, because vitest fails for an empty group. */
function selectProofShare(rows: readonly FaultRow[]): readonly FaultRow[] {
  const taken = rows.filter(({ name }) => isInProofShare(name))
  return taken.length > 0 ? taken : rows.slice(0, 1)
}

declare module 'vitest' {
  interface TaskMeta {
    proof?: Proof
  }
}

/**
 * Result of repeating a row without its fault.
 * - `bites`: the row fails, so it detects the fault.
 * - `tolerates`: the row passes, but fails if the service sends another answer. So parley reads the answer,
 *   and the fault correctly changes nothing.
 * - `either`: the row passes, and its field `either` gives the reason.
 * - `passes`: the row passes without a reason, so it proves nothing.
 */
interface Proof {
  verdict: 'bites' | 'tolerates' | 'either' | 'passes'
  fault?: FaultSource
  either?: string
}

async function prove(given: FaultRow): Promise<Proof> {
  const row = { ...given, reqs: countRequests(given) }
  for (const fault of listFaultSources(row))
    if (await fails(removeFault(row, fault))) return { verdict: 'bites', fault }
  if (row.either !== undefined) return { verdict: 'either', either: row.either }
  const isRead = row.script !== undefined && (await fails(removeFault(row, 'service', 'something else')))
  return { verdict: isRead ? 'tolerates' : 'passes' }
}

/** Returns whether the row fails or does not end in time. */
async function fails(row: FaultRow): Promise<boolean> {
  const late = pause(15_000).then(() => true)
  return Promise.race([
    late,
    chooseRun(row)(row).then(
      () => false,
      () => true,
    ),
  ])
}

/** Allowance for versions of Node after 20, in MiB, because Node 24 needs 10 MiB more. */
const extraMiB = process.versions.node.startsWith('20.') ? 0 : 20

/** Returns the programs and features that a row requires. */
const listNeeds = ({ shell = '', signal }: FaultRow): string[] => [
  ...(shell === '' ? [] : ['sh']),
  ...(signal ? ['signals'] : []),
  ...['/dev/full', 'script', 'unshare', 'python3'].filter((need) => shell.includes(need)),
]

/**
 * Returns whether the row involves a shell, a signal, a memory limit or a variable that Node itself reads.
 */
const needsProcess = ({ shell, signal, during, maxMiB, env = {}, isProcess = false }: FaultRow): boolean =>
  isProcess ||
  [shell, signal, during, maxMiB].some((need) => need !== undefined) ||
  Object.keys(env).some((name) => name.startsWith('NODE_'))

const chooseRun = (row: FaultRow) => (needsProcess(row) ? runInSlot : runInThisProcess)

/** Server, folder and command line of a row, ready to run. */
interface Stage {
  server: ScriptedServer
  folder: string
  argv: string[]
  env: Record<string, string>
}

async function setUp(row: FaultRow): Promise<Stage> {
  const refuse: Script = (socket) => void socket.destroy()
  const server = await serve(row.script ?? refuse, row.listen)
  const folder = makeRunFolder()
  row.prepare?.(folder)
  const url = row.url?.(server) ?? server.url
  const env = { PARLEY_BASE_URL: url, PARLEY_AGENTS_URL: url, ...row.envOf?.(server), ...row.env }
  return { server, folder, argv: row.argv ?? chatArgv, env }
}

async function runInThisProcess(row: FaultRow): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  try {
    const ending = await runInProcess({ ...row, argv, env }, folder)
    // parley must close every connection, because an open one would keep a real process running. A server
    // with `onConnection` does not read, so it never detects the close.
    while (!row.listen?.onConnection && server.sockets.size > 0) await pause(5)
    checkResult(row, ending, server)
    row.check?.({ ending, server })
  } finally {
    await server.close()
  }
}

/**
 * Maximum number of concurrent processes. `npm run proof:faults` has no maximum, because a wait for a slot
 * would count towards the time limit of a test.
 */
const maxProcesses = process.env.TEST_PROOF ? Infinity : 5
let processes = 0
const queue: (() => void)[] = []

async function runInSlot(row: FaultRow): Promise<void> {
  if (processes < maxProcesses) processes++
  else await new Promise<void>((resolve) => queue.push(resolve))
  try {
    await runInNewProcess(row)
  } finally {
    const next = queue.shift()
    if (next) next()
    else processes--
  }
}

async function runInNewProcess(row: FaultRow): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  const command = launchParley({ ...row, argv, env }, folder)
  try {
    if (row.signal) await interrupt(command, server, row.signal)
    const [ending] = await Promise.all([command.ended, row.during?.(command, server)])
    // The requests have arrived, but this process reads them only in the next turn of its event loop.
    await pause(0)
    checkResult(row, ending, server)
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
  { name, at, again, toGroup }: NonNullable<FaultRow['signal']>,
): Promise<void> {
  const isReached = {
    connection: () => server.connections > 0,
    request: () => server.requests.length > 0,
    out: () => command.out().length > 0,
    err: () => command.err() !== '',
    // A file may be renamed between the two calls.
    file: () =>
      readdirSync(command.cwd)
        .map((name) => statSync(join(command.cwd, name), { throwIfNoEntry: false }))
        .some((stat) => stat !== undefined && stat.size > 0),
  }[at]
  await command.waitUntil(isReached)
  // The signal must arrive during the wait that follows this state, not before the wait.
  await pause(100)
  if (toGroup) process.kill(-(command.child.pid as number), name)
  else command.child.kill(name)
  if (again) command.child.kill(name)
  await command.ended
}

/** Checks the expectations of the row, and the rules that README.md gives for all rows. */
function checkResult(row: FaultRow, ending: CommandResult, server: ScriptedServer): void {
  const { code, out = '', files = [] } = row
  const reqs = countRequests(row)
  const conns = row.conns ?? reqs
  const isExpected = typeof out === 'function' ? out(ending.out) : ending.out.equals(Buffer.from(out))
  const shown = ending.out.subarray(0, 2000).toString()
  const counted = { code: ending.code, reqs: server.requests.length, conns: server.connections }
  expect(counted, ending.err + shown).toEqual({ code: oneOf(code), reqs, conns })
  expect(isExpected, `stdout: ${shown}\nstderr: ${ending.err}`).toBe(true)
  const names = [...ending.files.keys()]
  expect(names.filter((name) => !isSavedAnswer(name))).toEqual(files)
  for (const name of names.filter(isSavedAnswer)) expect(ending.err).toContain(name.replace('tmp/', ''))
  const missing = (row.err ?? []).filter((text) => !asPattern(text).test(ending.err))
  expect(missing, ending.err).toEqual([])
  expect(ending.seconds).toBeGreaterThanOrEqual(row.minSeconds ?? 0)
  if (row.maxMiB) expect(ending.peakMiB).toBeLessThan(row.maxMiB + extraMiB)
  checkStderr(ending.err)
  const texts = [ending.err, ...ending.files.values(), ending.out.toString('latin1')]
  for (const canary of Object.values(canarySecrets)) {
    for (const text of texts) expect(text).not.toContain(canary)
  }
}

const countRequests = ({ script, reqs = script ? 1 : 0 }: FaultRow) => reqs

/** Returns whether a file is an answer that parley saved. Such a file need not be in `files`. */
const isSavedAnswer = (name: string) => /^tmp\/parley-[\w-]{36}\.(json|txt)$/.test(name)

const oneOf = <T>(expected: T | readonly T[]) =>
  Array.isArray(expected) ? expect.toSatisfy((value) => expected.includes(value)) : expected

const asPattern = (text: string | RegExp) =>
  typeof text === 'string' ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : text

/**
 * Throws if stderr has control bytes other than newline, a stack trace, or remote text at the start of a
 * line. CI systems execute commands at the start of a line.
 */
function checkStderr(err: string): void {
  expect(err).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
  expect(err).not.toMatch(/^\s+at |node:internal|undici|undefined|\[object/m)
  const starts = /^(parley: | {2}\S|[<>] |— |\{"(error|warning)":)/
  const lines = err.split('\n').slice(0, -1)
  expect(lines.filter((line) => !starts.test(line))).toEqual([])
  expect(err === '' || err.endsWith('\n')).toBe(true)
}

export const chatArgv = ['chat', 'hi']
export const streamArgv = ['chat', 'hi', '--stream']
export const sendArgv = ['events', 'send', 'hi']

type Fields = Partial<FaultRow>

/** Fields of a row in which the service answers "ok" and `chat` prints the answer. */
export const chatSuccess = { script: respondWith(okResponse), code: 0, out: okOutput } satisfies Fields

/** Fields of a row in which the service accepts an event and `events send` prints its response. */
export const sendSuccess = { script: respondWith(sendResponse), code: 0, out: sendOutput } satisfies Fields

/** Expected result of wrong arguments or input: nothing is sent. */
export const usageError = { code: 2, err: ['parley: '] } satisfies Fields

/** Expected result of a stream with the text "so far" that ends without a sign that it is complete. */
const unfinished: Fields = { argv: streamArgv, out: 'so far\n', err: ['the stream ended early'] }
export const unfinishedStream = { ...unfinished, code: 8 }

/** Returns the fields of a row: SIGINT ends the run at this point, and parley prints this message. */
export const endsBySigint = (at: NonNullable<Fields['signal']>['at'], message: string) =>
  ({
    signal: { name: 'SIGINT', at },
    code: 'SIGINT',
    err: [`parley: interrupted${message}\n`],
  }) satisfies Fields

/** Returns a row with these fields. Default exit code: 0. */
export const row = (name: string, given: Partial<FaultRow>, expected: Partial<FaultRow> = {}): FaultRow => ({
  code: 0,
  ...given,
  ...expected,
  name,
})

/** Returns the same row for `chat` and for `events send`. The titles name the command. */
export const forChatAndSend = (
  name: string,
  given: Partial<FaultRow> & { flags?: string[] },
  expected: Partial<FaultRow> = {},
): FaultRow[] =>
  [chatArgv, sendArgv].map((argv) => {
    const { flags = [], ...fields } = { code: 0, ...given, ...expected }
    return {
      ...(argv === chatArgv && fields.code === 0 ? { out: 'ok\n' } : {}),
      ...fields,
      name: name.replace(': parley', `: parley ${argv.slice(0, -1).join(' ')}`),
      argv: [...argv, ...flags],
    }
  })
