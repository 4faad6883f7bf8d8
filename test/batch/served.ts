import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { message, temporaryFolder } from '../harness/run.ts'
import { envFor, response, type Script, serve } from '../harness/server.ts'

export const answer = response(message('hi'))

/** Creates a folder with an input of this number of lines, and a server. */
export async function prepare(count: number, script: Script) {
  const server = await serve(script)
  onTestFinished(() => server.close())
  const cwd = temporaryFolder()
  const lines = Array.from({ length: count }, (_, at) => `{"id":${at + 1},"prompt":"p ${at + 1} of it"}\n`)
  writeFileSync(join(cwd, 'in.ndjson'), lines.join(''))
  return { server, cwd, env: envFor(server) }
}

export const idsIn = (text: string): number[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).id)
