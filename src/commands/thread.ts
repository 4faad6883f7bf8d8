import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { buildBody } from '../client/generate-body.ts'
import { appending } from '../client/set.ts'
import { CliError } from '../errors.ts'
import type { FileOutput } from '../terminal/file-output.ts'
import { decodeUtf8, type Input } from '../terminal/input.ts'

/** Reads a conversation kept in a file of the request's own form; one that is not there or empty is `undefined`. */
export async function readThread(
  input: Input,
  path: string,
  cwd: string,
): Promise<{ text: string; name: string } | undefined> {
  if (!existsSync(resolve(cwd, path))) return undefined
  const text = decodeUtf8(await input.file(path), path)
  return text.trim() === '' ? undefined : { text, name: path }
}

/** Writes the conversation that was sent, with the answer as its last turn, in the old file's place at once. */
export async function saveThread(
  file: FileOutput,
  { body, answer, role }: { body: Uint8Array; answer: string; role: string },
): Promise<void> {
  const turn = JSON.stringify({ role, parts: [{ text: answer }] })
  const given = { text: Buffer.from(body).toString(), name: 'the thread' }
  const whole = await buildBody({ given, turn: [], assignments: [appending(['contents'], turn)] })
  try {
    await file.write(whole)
    await file.commit()
  } catch (error) {
    throw error instanceof CliError ? error.with({ consequence: 'the answer is not in the thread' }) : error
  }
}
