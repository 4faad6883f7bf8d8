import { type ChildProcess, spawnSync } from 'node:child_process'
import { win32 } from 'node:path'

export interface FamilyOptions {
  /** It leads a group of processes. */
  isLeader: boolean
  platform: NodeJS.Platform
  env: Readonly<Record<string, string | undefined>>
}

/** Ends a process and those that it started. Synchronous. */
export function endFamily(child: ChildProcess, { isLeader, platform, env }: FamilyOptions): void {
  if (child.pid === undefined) return
  const isEnded = platform === 'win32' ? endTree(child.pid, env) : endBySignals(child.pid, isLeader)
  if (!isEnded) child.kill('SIGKILL')
}

/** By TERM, and soon after by KILL. Returns false where there is no shell. */
function endBySignals(pid: number, isLeader: boolean): boolean {
  const targets = isLeader ? [`-${pid}`] : descendants(pid).map(String)
  const script = 'kill -s TERM -- "$@"; sleep 0.1; kill -s KILL -- "$@"'
  return spawnSync('sh', ['-c', script, 'sh', ...targets], { stdio: 'ignore' }).error === undefined
}

/** A signal has to end the run within half a second. Milliseconds. */
const longest = 400

/** Of Windows: by itself it would end the process with this one, but not what the process has started. */
function endTree(pid: number, env: FamilyOptions['env']): boolean {
  // By its whole path: it would be looked for in the current folder first.
  const taskkill = win32.join(env.SystemRoot ?? 'C:\\Windows', 'System32', 'taskkill.exe')
  const words = ['/PID', String(pid), '/T', '/F']
  return spawnSync(taskkill, words, { stdio: 'ignore', timeout: longest }).status === 0
}

/** The process itself, and all below it that the system lists. */
function descendants(pid: number): number[] {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const processes = (stdout ?? '').split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  const family = [pid]
  for (const member of family) {
    family.push(...processes.flatMap(([id, parent]) => (parent === member && id ? [id] : [])))
  }
  return family
}
