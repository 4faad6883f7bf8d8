import { spawnSync } from 'node:child_process'
import { existsSync, lstatSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const isPosix = process.platform !== 'win32'
const canRun = (...[command = '', ...words]: string[]) =>
  spawnSync(command, words, { stdio: 'ignore' }).status === 0

/** On Windows not everybody may make a link. */
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

/** What some tests need, and whether this system has it. */
const needs = {
  'a POSIX shell': isPosix,
  signals: isPosix,
  FIFOs: isPosix,
  'owners, modes and links of POSIX': isPosix,
  'symbolic links': isPosix || canLink(),
  'control characters in names': isPosix,
  'files replaced while they are open': isPosix,
  'a reset that is told from an end': isPosix,
  '/dev/full': existsSync('/dev/full'),
  '/proc': isPosix && existsSync('/proc/self/status'),
  openssl: canRun('openssl', 'version'),
  'split of GNU in a POSIX shell': isPosix && canRun('split', '--version'),
  'timeout in a POSIX shell': isPosix && canRun('timeout', '1', 'true'),
}

type Need = keyof typeof needs

/** The files that need it as a whole, and the tests that do in others, by how their names or those around them begin. */
const needing: Record<string, Need | [Need, ...names: string[]][]> = {
  'test/package/action.heavy.test.ts': 'a POSIX shell',
  'test/api/api.test.ts': [['a POSIX shell', 'O08']],
  'test/batch/command.test.ts': [['a POSIX shell', 'is renewed once', 'is not renewed for ever']],
  'test/batch/connections.test.ts': [['openssl', 'over TLS', 'through a proxy']],
  'test/batch/process.test.ts': [
    ['signals', 'the first SIGINT', 'a SIGTERM at once', 'a SIGINT at once'],
    ['/dev/full', 'a disk that is full'],
    ['a POSIX shell', 'shares that split deals out', 'shares that GNU parallel deals out'],
  ],
  'test/batch/results-file.test.ts': [
    ['owners, modes and links of POSIX', 'is not made through a link'],
    ['files replaced while they are open', 'is left alone once another run'],
  ],
  'test/package/compiled-code.test.ts': 'owners, modes and links of POSIX',
  'test/gateway/chat/chat.test.ts': [
    ['symbolic links', 'a file that is replaced keeps its mode'],
    ['a POSIX shell', '--curl in'],
  ],
  'test/cli/completion.test.ts': [['a POSIX shell', 'names every flag of every command']],
  'test/settings/config-file.test.ts': [
    ['a POSIX shell', 'C01'],
    ['owners, modes and links of POSIX', 'C02', 'C03', 'C10', 'C12', 'C13: what is no file is exit 3: under'],
    ['owners, modes and links of POSIX', 'C13: a file that cannot be read', 'C17', 'C21'],
    ['FIFOs', 'C13: what is no file is exit 3: a pipe'],
  ],
  'test/settings/config-secrets.test.ts': [
    ['/proc', 'K01: the arguments of a process'],
    ['a POSIX shell', 'a secret from a command'],
  ],
  'test/sessions/run/kills.heavy.test.ts': 'a POSIX shell',
  'test/sessions/run/process.test.ts': [['signals', 'Y65']],
  'test/sessions/run/run.test.ts': [
    ['a POSIX shell', 'a custom tool is carried out', 'Y60', 'a tool that waits for its result', 'Y63'],
    ['owners, modes and links of POSIX', 'Y59: a link'],
    ['FIFOs', 'Y59: a FIFO'],
  ],
  'test/http/failure.test.ts': [
    ['/dev/full', 'tells the same of a failure in a body: chat, to a file'],
    ['signals', 'a signal in the wait'],
  ],
  'test/faults/claims.test.ts': [['signals', 'U32 a rate limit after a cut']],
  'test/faults/connect.test.ts': 'openssl',
  'test/faults/files.test.ts': [
    ['FIFOs', 'F02', 'F20'],
    ['signals', 'F06'],
    ['symbolic links', 'F03'],
  ],
  'test/faults/flags.test.ts': [['FIFOs', 'P56']],
  'test/faults/input.test.ts': [['owners, modes and links of POSIX', 'P15 @path that cannot be read']],
  'test/faults/output.test.ts': [['signals', 'G02', 'G06']],
  'test/faults/policy.test.ts': 'openssl',
  'test/faults/proxy.test.ts': 'openssl',
  'test/faults/recorded-stream.test.ts': [
    ['a reset that is told from an end', 'E31 STOP and an end, then a reset'],
  ],
  'test/faults/serve.test.ts': [
    ['/proc', 'W01 listens on loopback only', 'W06 a body of a gigabyte', 'W06 many big bodies'],
    ['/proc', 'W06 a thousand idle sockets'],
  ],
  'test/faults/session.test.ts': [['a POSIX shell', 'Y32']],
  'test/io/github.test.ts': [['signals', 'in a process lines are guarded, and the last words of a signal']],
  'test/cli/help-texts.test.ts': [['a POSIX shell', 'every example']],
  'test/cli/help.test.ts': [
    ['/dev/full', 'a stdout that cannot be written'],
    ['timeout in a POSIX shell', 'a signal ends a run whose last words'],
  ],
  'test/gateway/image/files.test.ts': [
    ['control characters in names', 'I13: an explicit name'],
    ['symbolic links', 'an automatic name passes', 'I03'],
  ],
  'test/gateway/image/process.test.ts': [
    ['signals', 'G02', 'G06'],
    ['FIFOs', 'I04'],
    ['owners, modes and links of POSIX', 'I05', 'I12'],
    ['/dev/full', 'O04'],
    ['a POSIX shell', 'a reader of the paths'],
  ],
  'test/http/preview.test.ts': [['a POSIX shell', 'V20: --curl in', 'is read by a shell']],
  'test/package/recipes.heavy.test.ts': 'split of GNU in a POSIX shell',
  'test/report.test.ts': [
    ['signals', 'a signal is in the report'],
    ['symbolic links', 'link cannot have a report'],
    ['a POSIX shell', 'a stdout whose reader has gone'],
  ],
  'test/settings/secret-command.test.ts': 'a POSIX shell',
  'test/package/workflows.test.ts': [['a POSIX shell', 'a release needs']],
}

/** The files that cannot run here, and what they would need. */
export const leftOut = Object.entries(needing).filter(
  (entry): entry is [string, Need] => typeof entry[1] === 'string' && !needs[entry[1]],
)

/** What a test of a file would need, by its names from the outermost on; `undefined` where it can run. */
export function findMissing(file: string, names: string[]): string | undefined {
  const groups = needing[file] ?? []
  if (typeof groups === 'string') return undefined
  const isMeant = (begins: string[]) => names.some((name) => begins.some((start) => name.startsWith(start)))
  return groups.find(([need, ...begins]) => !needs[need] && isMeant(begins))?.[0]
}

/** The names of a file's tests in the table above that none of its tests has. */
export function findLost(file: string, fullNames: string[]): string[] {
  const groups = needing[file] ?? []
  if (typeof groups === 'string') return []
  const names = fullNames.flatMap((name) => name.split(' > '))
  return groups
    .flatMap(([, ...begins]) => begins)
    .filter((start) => !names.some((name) => name.startsWith(start)))
}
