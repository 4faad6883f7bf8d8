import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { listen } from '../../../src/emulator/listen.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { temporaryFolder } from '../../harness/run.ts'
import {
  type AgentScript,
  type AgentService,
  createAgentService,
  type Event,
  lockOf,
} from './agent-service.ts'

/** A session service on a port, and a folder with a policy that allows everything. */
export async function serve(script: AgentScript, onRequest = () => {}) {
  const service = createAgentService(script)
  const exchange: Exchange = (request) => {
    onRequest()
    return service.exchange(request)
  }
  const server = await listen({ port: 0, host: '127.0.0.1', exchange, onRequest() {} })
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

export const use = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: {},
  evaluated_permission: 'ask',
})
export const custom = (id: string): Event => ({ id, type: 'agent.custom_tool_use', name: 'count', input: {} })

/** Ids of tool uses, and how often each was answered. */
export const answered = ({ taken }: AgentService) =>
  [...taken].map(([id, answers]) => `${id} ${answers.length}`)

/** What a killed run leaves is otherwise waited for. */
export function forgetLock(cwd: string): void {
  rmSync(join(cwd, lockOf('a.ndjson')), { force: true })
  const folder = join(cwd, 'cache/parley')
  // A run that was killed at once has none.
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) if (name.endsWith('.parley-lock')) rmSync(join(folder, name))
}

/** Whether the audit says that the task is done: a run may be killed after that, and then the same line sends it anew. */
export function isDone(cwd: string): boolean {
  const file = join(cwd, 'a.ndjson')
  return existsSync(file) && readFileSync(file, 'utf8').includes('"event":"done"')
}
