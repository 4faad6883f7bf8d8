import { existsSync, lstatSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canRun, canRunAsNobody, isRoot } from './process.ts'

const isPosix = process.platform !== 'win32'

/** Returns whether this user may create symbolic links. On Windows, only some users may. */
function canLink(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'parley-link-'))
  try {
    symlinkSync('nowhere', join(folder, 'link'))
    return lstatSync(join(folder, 'link')).isSymbolicLink()
  } catch {
    return false
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const hasCommand = (name: string) => canRun('sh', '-c', `command -v ${name}`)

/** Checks of requirements. A requirement without a check is the name of a command. */
const needs: Record<string, () => boolean> = {
  Windows: () => !isPosix,
  Linux: () => process.platform === 'linux',
  signals: () => isPosix,
  FIFOs: () => isPosix,
  'POSIX files': () => isPosix,
  'symbolic links': () => isPosix || canLink(),
  'control characters in names': () => isPosix,
  'files replaced while open': () => isPosix,
  resets: () => isPosix,
  '/dev/full': () => existsSync('/dev/full'),
  '/proc': () => isPosix && existsSync('/proc/self/status'),
  root: () => isRoot,
  'another user': canRunAsNobody,
  sh: () => isPosix,
  'GNU split': () => canRun('split', '--version'),
  unshare: () => canRun('unshare', '-m', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt'),
  script: () => canRun('script', '-qec', 'true', '/dev/null'),
  strace: () => canRun('strace', '-f', '-o', '/dev/null', 'true'),
  ps: () => canRun('ps', '-o', 'stat=', '-p', '1'),
  python3: () => canRun('python3', '-c', 'import pty; open("/proc/self/stat")'),
  taskkill: () => canRun('taskkill', '/?'),
}

const known = new Map<string, boolean>()

export function meetsRequirement(need: string): boolean {
  let isThere = known.get(need)
  if (isThere === undefined) {
    isThere = needs[need]?.() ?? hasCommand(need)
    known.set(need, isThere)
  }
  return isThere
}
