import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Host } from '../../src/basic-context.ts'
import type { main } from '../../src/main.ts'
import { createSteadyClock } from '../harness/clock.ts'
import { createCollector } from '../harness/run.ts'
import type { CommandResult, LaunchOptions } from './launch.ts'
import { createEnvironment, readRunFiles, recycleFolder } from './launch.ts'

const require = createRequire(import.meta.url)
const names = require('./preload.cjs') as { mapNames(): void; unmapNames(): void }
names.unmapNames()

/** Restores the real name lookup, because other test files run in the same process. */
export const { unmapNames } = names

/** Runs the built program in this process, which is faster than `launchParley` in a separate process. */
export async function runInProcess(
  { argv, stdin, env }: LaunchOptions,
  folder: string,
): Promise<CommandResult> {
  names.mapNames()
  const program = require('../../dist/main.cjs') as { main: typeof main }
  const [out, err] = [createCollector(), createCollector()]
  const host: Host = {
    // A busy machine could exceed the default, because the connect timeout uses real time.
    env: createEnvironment(folder, { PARLEY_CONNECT_TIMEOUT: '10m', ...env }),
    cwd: join(folder, 'cwd'),
    platform: process.platform,
    uid: process.getuid?.(),
    stdin: { kind: stdin === undefined ? 'none' : 'pipe', open: () => open(stdin) },
    stdout: out.end,
    stderr: err.end,
    timers: createSteadyClock(),
  }
  const start = performance.now()
  const code = await program.main(argv, host)
  const seconds = (performance.now() - start) / 1000
  const files = readRunFiles(folder)
  recycleFolder(folder)
  return { code, out: out.bytes(), err: err.bytes().toString(), seconds, peakMiB: 0, files }
}

function open(stdin: LaunchOptions['stdin']): Readable {
  if (stdin === undefined) return Readable.from([])
  const isWhole = typeof stdin === 'string' || stdin instanceof Uint8Array
  return isWhole ? Readable.from([Buffer.from(stdin as string)]) : new Readable({ read() {} })
}
