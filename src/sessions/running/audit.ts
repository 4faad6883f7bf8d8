import {
  closeSync,
  constants,
  createReadStream,
  fchmodSync,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs'
import { resolve } from 'node:path'
import type { Context } from '../../context.ts'
import { CliError, fileProblem } from '../../errors.ts'
import { requireRegular } from '../../io/regular-file.ts'
import type { Decision } from '../policy/policy.ts'
import { type Earlier, nothingEarlier, readEarlier } from './earlier.ts'

/** What is recorded of a tool use; `session` and `time` are added. */
interface Entry {
  toolUse: string
  name: string
  /** The tool's input as it is spelled. */
  input?: string
  event: 'decision' | 'start' | 'end' | 'sent' | 'accepted' | 'unknown' | 'not-asked'
  decision?: Decision
  by?: 'rule' | 'default' | 'person' | 'tool'
  /** From 0. */
  rule?: number
  reason?: string
}

/** A record of what was decided and done, and a journal that says after a kill how far it got. */
export interface Audit {
  /** What earlier runs did in this session. */
  earlier: Earlier
  /** Has a line on the disk before it returns. Throws a `CliError` of kind `file`. */
  add(entry: Entry): void
  close(): void
}

/** Without a path nothing is recorded. Throws a `CliError` of kind `file`. */
export async function openAudit(
  { host, timers }: Pick<Context, 'host' | 'timers'>,
  path: string | undefined,
  session: string,
): Promise<Audit> {
  if (path === undefined) return { earlier: nothingEarlier, add() {}, close() {} }
  const file = openRegular(resolve(host.cwd, path), path)
  try {
    const chunks = createReadStream('', { fd: file, start: 0, autoClose: false, highWaterMark: 256 * 1024 })
    const earlier = await readEarlier(chunks, session)
    if (!endsInNewline(file)) write(file, '\n', path)
    return {
      earlier,
      add: (entry) => write(file, `${toLine(entry, session, timers.now())}\n`, path),
      close: () => closeSync(file),
    }
  } catch (error) {
    closeSync(file)
    throw error instanceof CliError ? error : failed(path, error)
  }
}

const failed = (path: string, error: unknown) =>
  new CliError('file', `the audit file ${path}: ${fileProblem(error)}`)

function openRegular(path: string, name: string): number {
  // These are not there on every system.
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_RDWR, O_APPEND, O_CREAT } = constants
  let file: number
  try {
    // A FIFO that nobody reads would be waited for.
    file = openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
  } catch (error) {
    const isLink = (error as NodeJS.ErrnoException).code === 'ELOOP'
    throw isLink ? new CliError('file', `the audit file ${name}: it is a link`) : failed(name, error)
  }
  try {
    const { mode } = requireRegular(file, `the audit file ${name}`)
    if (O_NOFOLLOW !== 0 && (mode & 0o077) !== 0) fchmodSync(file, 0o600)
    return file
  } catch (error) {
    closeSync(file)
    throw error instanceof CliError ? error : failed(name, error)
  }
}

/** Whether the file is empty or its last line is whole. */
function endsInNewline(file: number): boolean {
  const { size } = fstatSync(file)
  const last = Buffer.alloc(1)
  return size === 0 || (readSync(file, last, 0, 1, size - 1) === 1 && last[0] === 0x0a)
}

/** In one write; the rest, where a disk had no room for all, shows why. */
function write(file: number, text: string, name: string): void {
  const bytes = Buffer.from(text)
  try {
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes.subarray(written))
    fsyncSync(file)
  } catch (error) {
    throw failed(name, error)
  }
}

/** The fields in their order, the input as it is spelled. */
function toLine(entry: Entry, session: string, now: number): string {
  const { toolUse, name, input, event, decision, by, rule, reason } = entry
  const head = JSON.stringify({ time: new Date(now).toISOString(), session, toolUse, name }).slice(0, -1)
  const tail = JSON.stringify({ event, decision, by, rule, reason }).slice(1)
  return `${head},${input === undefined ? '' : `"input":${input},`}${tail}`
}
