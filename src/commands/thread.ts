import { existsSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { buildBody } from '../client/generate-body.ts'
import { appending } from '../client/set.ts'
import { CliError, fileProblem } from '../errors.ts'
import { decodeUtf8, type Input } from '../terminal/input.ts'

/** Reads a conversation kept in a file of the request's own form; one that is not there yet is `undefined`. */
export async function readThread(
  input: Input,
  path: string,
  cwd: string,
): Promise<{ text: string; name: string } | undefined> {
  if (!existsSync(resolve(cwd, path))) return undefined
  return { text: decodeUtf8(await input.file(path), path), name: path }
}

/** Writes the conversation that was sent, with the answer as its last turn, in the old file's place at once. */
export async function saveThread(
  path: string,
  { body, answer, role, cwd }: { body: Uint8Array; answer: string; role: string; cwd: string },
): Promise<void> {
  const turn = JSON.stringify({ role, parts: [{ text: answer }] })
  const given = { text: Buffer.from(body).toString(), name: path }
  const whole = await buildBody({ given, turn: [], assignments: [appending(['contents'], turn)] })
  const target = resolve(cwd, path)
  try {
    await writeFile(`${target}.part`, whole)
    await rename(`${target}.part`, target)
  } catch (error) {
    throw new CliError('file', `${path}: ${fileProblem(error)}: the answer is not in the thread`, {
      sent: 'yes',
    })
  }
}
