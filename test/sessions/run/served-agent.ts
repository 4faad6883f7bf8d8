import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { startEmulatorServer } from '../../../src/emulator/listen.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { temporaryFolder } from '../../harness/run.ts'
import { type AgentScript, type AgentService, createAgentService, getLockPath } from './agent-service.ts'

/** Serves a session on a port, and creates a folder with a policy that allows everything. */
export async function serve(script: AgentScript, onRequest = () => {}) {
  const service = createAgentService(script)
  const exchange: Exchange = (request) => {
    onRequest()
    return service.exchange(request)
  }
  const server = await startEmulatorServer({ port: 0, host: '127.0.0.1', exchange, onRequest() {} })
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const env = {
    PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}`,
    XDG_CACHE_HOME: join(cwd, 'cache'),
    NODE_OPTIONS: `--require ${JSON.stringify(join(import.meta.dirname, '../../harness/steady.cjs'))}`,
  }
  return { service, cwd, env }
}

export const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson']

/** Returns the ids of tool uses, each with its number of replies. */
export const countReplies = ({ acceptedReplies }: AgentService) =>
  [...acceptedReplies].map(([id, answers]) => `${id} ${answers.length}`)

/** Removes the lock files of a killed run. Otherwise the next run waits until they expire. */
export function removeLocks(cwd: string): void {
  rmSync(join(cwd, getLockPath('a.ndjson')), { force: true })
  const folder = join(cwd, 'cache/parley')
  // A run that was killed early has no folder for lock files.
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) if (name.endsWith('.parley-lock')) rmSync(join(folder, name))
}

/** Returns true if the audit file shows the task as done. The same command would then send the task again. */
export function isDone(cwd: string): boolean {
  const file = join(cwd, 'a.ndjson')
  return existsSync(file) && readFileSync(file, 'utf8').includes('"event":"done"')
}
