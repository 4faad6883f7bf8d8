import { type ChildProcess, spawnSync } from 'node:child_process'

/** Ends a process and those that it started, by TERM and soon after by KILL. Synchronous. */
export function endFamily(child: ChildProcess, isLeader: boolean): void {
  if (child.pid === undefined) return
  const targets = isLeader ? [`-${child.pid}`] : descendants(child.pid).map(String)
  const script = 'kill -s TERM -- "$@"; sleep 0.1; kill -s KILL -- "$@"'
  const { error } = spawnSync('sh', ['-c', script, 'sh', ...targets], { stdio: 'ignore' })
  if (error) child.kill('SIGKILL')
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
