import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { has } from '../harness/needs.ts'
import { type Script, type ScriptedServer, type ServeOptions, serve } from '../harness/server.ts'
import { isInShare } from '../harness/share.ts'
import type { Certificate } from './certificates.ts'
import { runInside, unmapNames } from './inside.ts'
import { type Fault, faultsOf, takeOut } from './proof.ts'
import { canaries, type Ending, type Launch, launch, makeFolders, removeFolder, type World } from './world.ts'
import { judge, persist } from './wrapper.ts'

/** One row of the fault matrix: what is run, what it meets, and how it must end. */
export interface Row extends Partial<Launch> {
  /** Begins with the row's id. */
  name: string
  /** What the service does with each request; without it nobody may call. */
  script?: Script
  listen?: Omit<ServeOptions, 'tls'> & { tls?: () => Certificate }
  /** The service's address, where it is not the server's own. */
  url?(server: ScriptedServer): string
  /** Environment that depends on the server. */
  envOf?(server: ScriptedServer): Record<string, string>
  /** Fills the run's folder before it starts. */
  prepare?(folder: string): void
  /** Sent when the run has come that far; `file` is text in a file of its folder. */
  signal?: {
    name: NodeJS.Signals
    at: 'connection' | 'request' | 'out' | 'err' | 'file'
    again?: boolean
    toGroup?: boolean
  }

  /** One of several where both are right. */
  code: Code | readonly Code[]
  /** stdout, to the byte; a function where it is long. */
  out?: string | Uint8Array | ((out: Buffer) => boolean)
  /** What stderr must hold. */
  err?: (string | RegExp)[]
  /** Complete requests, and connections; without `conns` each request has its own. */
  reqs?: number
  conns?: number | readonly number[]
  /** Files that stay, from `home`, `cwd` or `tmp`. */
  files?: string[]
  /** Seconds. That it does not take longer is nothing that a test can tell: what never ends is stopped. */
  atLeast?: number
  /** MiB. */
  memory?: number
  /** stdout shows what the service sent, also secrets. */
  isRaw?: boolean
  /** stderr is a log, whose lines begin otherwise. */
  isLog?: boolean
  /** Its point is the process, though nothing else here says so. */
  isProcess?: boolean
  /** Goes on beside the run. */
  during?(world: World, server: ScriptedServer): Promise<void>
  /** Why the row passes without its fault, too: npm run proof:faults. */
  either?: string
  check?(seen: { ending: Ending; server: ScriptedServer }): void
}

type Code = Ending['code']

/**
 * Runs the rows of a group against the built command: in this process, or in one of its own if it needs that. What a
 * process adds is how it ends: all that was written is out, nothing keeps the process alive, the exit code is that
 * of main(). npm run test:all runs the first row of each id in a process, too, and lets a wrapper loose on those that
 * fail.
 */
export const faults = (group: string, rows: readonly Row[]): void =>
  runRows(group, rows, ({ name }) => /^[A-Z]+\d+/.exec(name)?.[0] ?? name)

/** The same for rows that differ in what comes over the network: one process for each command and exit code. */
export const faultsInside = (group: string, rows: readonly Row[]): void =>
  runRows(group, rows, ({ argv = chat, code }) =>
    [argv[0], argv[0] === 'events' && argv[1], argv.includes('--stream'), code].join(),
  )

/** Of rows of the same sort the first is tried in a process as well. */
function runRows(group: string, rows: readonly Row[], sortOf: (row: Row) => string): void {
  if (process.env.TEST_PROOF || !process.env.TEST_ALL) {
    faultsOnce(group, rows)
    return
  }
  const sorts = new Set(rows.filter(needsProcess).map(sortOf))
  const firsts = rows.filter((row) => {
    const sort = sortOf(row)
    return !sorts.has(sort) && sorts.add(sort)
  })
  if (firsts.length > 0) faultsOnce(group, firsts, run)
  const failing = rows.filter((row) => row.code !== 0 && !needsProcess(row))
  if (failing.length > 0) faultsOnce(`${group}, wrapped`, failing, runWrapped)
}

/** For rows that only npm run test:all tries. */
export function faultsOnce(group: string, rows: readonly Row[], how?: typeof run): void {
  if (process.env.TEST_PROOF) {
    proveRows(group, rows)
    return
  }
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of rows) {
      const missing = needsOf(row).find((need) => !has(need))
      const act = how ?? (needsProcess(row) ? run : runWithin)
      test(missing ? `${row.name} (needs ${missing})` : row.name, () => act(row))
    }
  })
}

/** A row that passes without its fault proves nothing, unless it says that the fault changes nothing. */
function proveRows(group: string, rows: readonly Row[]): void {
  describe.concurrent(group, () => {
    afterAll(unmapNames)
    for (const row of inShare(rows)) {
      const missing = needsOf(row).find((need) => !has(need))
      test(missing ? `${row.name} (needs ${missing})` : row.name, async ({ task }) => {
        const proof = await prove(row)
        task.meta.proof = proof
        expect(proof.verdict, 'it passes without its fault').not.toBe('passes')
      })
    }
  })
}

/** A group without a row would be an error. */
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
 * `bites`: without this part of it the row fails. `tolerates`: it passes without its fault, because what comes is to be
 * read as if nothing were wrong, and what came was read. `either`: it says why it passes. `passes`: it proves nothing.
 */
interface Proof {
  verdict: 'bites' | 'tolerates' | 'either' | 'passes'
  fault?: Fault
  either?: string
}

async function prove(row: Row): Promise<Proof> {
  for (const fault of faultsOf(row)) if (await fails(takeOut(row, fault))) return { verdict: 'bites', fault }
  if (row.either !== undefined) return { verdict: 'either', either: row.either }
  const isRead = row.script !== undefined && (await fails(takeOut(row, 'service', 'something else')))
  return { verdict: isRead ? 'tolerates' : 'passes' }
}

/** What does not end without its fault does not pass. */
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

/** What a Node newer than 20 takes more for the same work, in MiB; on 24 it was seen to be 10. */
const newerNode = process.versions.node.startsWith('20.') ? 0 : 20

/** What a row needs by what it runs. */
const needsOf = ({ shell = '', signal }: Row): string[] => [
  ...(shell === '' ? [] : ['sh']),
  ...(signal ? ['signals'] : []),
  ...['/dev/full', 'script', 'unshare', 'python3'].filter((need) => shell.includes(need)),
]

/** What a shell, a signal, a limit of memory or Node's own environment has to do with. */
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
    // What is left open would keep a process alive. Where nobody reads, nobody sees the end.
    while (!row.listen?.onConnection && server.sockets.size > 0) await pause(5)
    check(row, ending, server)
    row.check?.({ ending, server })
  } finally {
    await server.close()
  }
}

/** Runs a row as a wrapper does that repeats what it may. */
async function runWrapped(row: Row): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  const told = argv.includes('--errors') ? argv : ['--errors', 'json', ...argv]
  let next = folder
  const once = async () => {
    const ending = await runInside({ ...row, argv: told, env }, next)
    next = makeFolders()
    row.prepare?.(next)
    return ending
  }
  try {
    judge(argv, await persist(once, server))
  } finally {
    removeFolder(next)
    await server.close()
  }
}

/** Of many rows that wait at the same time, so many have a process. A proof has no time to wait for its turn. */
const mostProcesses = process.env.TEST_PROOF ? Infinity : 5
let processes = 0
const waiting: (() => void)[] = []

async function run(row: Row): Promise<void> {
  if (processes < mostProcesses) processes++
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    await runProcess(row)
  } finally {
    const next = waiting.shift()
    if (next) next()
    else processes--
  }
}

async function runProcess(row: Row): Promise<void> {
  const { server, folder, argv, env } = await setUp(row)
  const world = launch({ ...row, argv, env }, folder)
  try {
    if (row.signal) await interrupt(world, server, row.signal)
    const [ending] = await Promise.all([world.ended, row.during?.(world, server)])
    // What the run sent is there, but this process may not have come to read it.
    await pause(0)
    check(row, ending, server)
    row.check?.({ ending, server })
  } finally {
    world.child.kill('SIGKILL')
    await world.ended
    await server.close()
  }
}

async function interrupt(
  world: World,
  server: ScriptedServer,
  { name, at, again, toGroup }: NonNullable<Row['signal']>,
): Promise<void> {
  const hasCome = {
    connection: () => server.connections > 0,
    request: () => server.requests.length > 0,
    out: () => world.out().length > 0,
    err: () => world.err() !== '',
    file: () => readdirSync(world.cwd).some((name) => statSync(join(world.cwd, name)).size > 0),
  }[at]
  while (!hasCome() && world.child.exitCode === null) await pause(10)
  // Into the phase, not onto its edge.
  await pause(100)
  if (toGroup) process.kill(-(world.child.pid as number), name)
  else world.child.kill(name)
  if (again) world.child.kill(name)
  await world.ended
}

const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** The invariants of the fault matrix, and what the row itself says. */
function check(row: Row, ending: Ending, server: ScriptedServer): void {
  const { code, reqs = 0, conns = reqs, out = '', files = [] } = row
  const isExpected =
    typeof out === 'function' ? out(ending.out) : ending.out.equals(Buffer.from(out as string))
  const shown = ending.out.subarray(0, 2000).toString()
  const counted = { code: ending.code, reqs: server.requests.length, conns: server.connections }
  expect(counted, ending.err + shown).toEqual({ code: oneOf(code), reqs, conns: oneOf(conns) })
  expect(isExpected, `stdout: ${shown}\nstderr: ${ending.err}`).toBe(true)
  const [kept, others] = [true, false].map((is) =>
    [...ending.files.keys()].filter((name) => isKept(name) === is),
  )
  expect(others).toEqual(files)
  for (const name of kept ?? []) expect(ending.err).toContain(name.replace('tmp/', ''))
  const missing = (row.err ?? []).filter((said) => !asPattern(said).test(ending.err))
  expect(missing, ending.err).toEqual([])
  expect(ending.seconds).toBeGreaterThanOrEqual(row.atLeast ?? 0)
  if (row.memory) expect(ending.memory).toBeLessThan(row.memory + newerNode)
  checkStderr(ending.err, row.isLog)
  const places = [ending.err, ...ending.files.values(), ...(row.isRaw ? [] : [ending.out.toString('latin1')])]
  for (const canary of Object.values(canaries)) {
    for (const place of places) expect(place).not.toContain(canary)
  }
}

/** An answer that was paid for and not understood: stderr names it. */
const isKept = (name: string) => /^tmp\/parley-[\w-]{36}\.(json|txt)$/.test(name)

const oneOf = <T>(expected: T | readonly T[]) =>
  Array.isArray(expected) ? expect.toSatisfy((value) => expected.includes(value)) : expected

const asPattern = (said: string | RegExp) =>
  typeof said === 'string' ? new RegExp(said.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : said

/** No control byte but newline, no stack trace, and no remote text where CI systems look for commands. */
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
export const image = ['image', 'a fox', '-m', 'painter']

/** A stream of which some text came, and no end. */
export const early = {
  argv: stream,
  code: 8,
  reqs: 1,
  out: 'so far',
  err: ['the stream ended early'],
} satisfies Partial<Row>

/** The same row for chat and for events, which differ in `retries` only where the row says so. */
export const both = (row: Omit<Row, 'argv'> & { flags?: string[] }): Row[] =>
  [chat, events].map((argv) => ({
    ...(argv === chat && row.code === 0 ? { out: 'ok\n' } : {}),
    ...row,
    name: `${row.name} (${argv[0]})`,
    argv: [...argv, ...(row.flags ?? [])],
  }))
