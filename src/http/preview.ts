import { isUtf8 } from 'node:buffer'
import type { Context } from '../context.ts'
import { usageError } from '../errors.ts'
import { escapeControlsInJson, unsafeCharacters } from '../io/escape.ts'
import { tryDecodeUtf8 } from '../io/file-content.ts'
import { escapeShellWord, quoteShellWord } from '../io/shell-quote.ts'
import { isSecretHeader, type Secrets } from '../secrets.ts'
import { demoProfileName } from '../settings/profiles.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { getSettingEnvVar } from '../settings/table.ts'
import { tryParseJson } from '../wire/json/parse.ts'
import { toOneLineJson } from '../wire/page.ts'
import type { PreparedRequest } from './request.ts'

export async function previewRequest(
  { flags, output, messages, secrets }: Context,
  settings: ResolvedSettings,
  { request, isBatch }: { request: PreparedRequest; isBatch: boolean },
): Promise<void> {
  const setting = request.credential?.setting
  // All output is redacted, because a user may have given a secret by mistake as another value, for example
  // as the model.
  const { accessToken, apiKey } = settings.values
  for (const secret of [accessToken, apiKey]) if (secret !== undefined) secrets.add(secret)
  const { isTerminal } = output
  if (flags.curl) {
    const own =
      setting && settings.origins[setting]?.source !== 'environment' ? [getSettingEnvVar(setting)] : []
    const secretNames = Object.entries(request.headers)
      .filter(([name, value]) => isSecretHeader(name, value) || secrets.redact(value) !== value)
      .map(([name]) => name)
    const variables = [...own, ...secretNames.map(variableFor)]
    if (settings.profile.name === demoProfileName)
      messages.note('curl cannot send this request, because the demo has no network address')
    else if (variables.length > 0) messages.note(`set ${variables.join(' and ')} before running the command`)
    const shown = { ...request, url: secrets.redact(request.url), secretNames }
    const variable = getSettingEnvVar(setting ?? 'accessToken')
    await output.write(toCurl(shown, settings, { variable, isTerminal }))
  } else {
    const json = toDryRun(request, secrets, isBatch)
    await output.write(isTerminal ? escapeForTerminal(json) : json)
  }
  await output.flush()
}

/**
 * Carriage returns become line breaks, because on a terminal the text after them would overwrite the line.
 * The JSON keeps its meaning, because both characters are white space.
 */
const escapeForTerminal = (json: string): string => escapeControlsInJson(json.replace(/\r\n?/g, '\n'))

function toDryRun(
  { method, url, headers, body, credential }: PreparedRequest,
  secrets: Secrets,
  isLine: boolean,
): string {
  const own = credential ? { [credential.header]: `${credential.prefix}[redacted]` } : {}
  const shown = { method, url: secrets.redact(url), headers: secrets.redactHeaders({ ...own, ...headers }) }
  const head = JSON.stringify(shown, null, isLine ? 0 : 2)
  if (!body) return `${head}\n`
  const json = bodyAsJson(body)
  return isLine
    ? `${head.slice(0, -1)},"body":${toOneLineJson(json)}}\n`
    : `${head.slice(0, -2)},\n  "body": ${json}\n}\n`
}

function bodyAsJson(body: Uint8Array): string {
  const text = tryDecodeUtf8(body)
  if (text === undefined) return JSON.stringify({ base64: Buffer.from(body).toString('base64') })
  return tryParseJson(text) === undefined ? JSON.stringify(text) : text.trim()
}

/** curl gets a longer body from a pipe, because some systems limit the length of an argument. */
const maxArgumentBytes = 100 * 1024

/**
 * The printed command passes secrets to curl on stdin, so that no list of processes shows them. A long body
 * is written by the printf of the shell, because its arguments may have any length. On a terminal, control
 * characters become escapes that bash and zsh support.
 */
function toCurl(
  request: PreparedRequest & { secretNames: string[] },
  { values, origins }: ResolvedSettings,
  { variable, isTerminal }: { variable: string; isTerminal: boolean },
): string {
  const { method, url, headers, body, credential, removedHeaders, secretNames } = request
  const quote = isTerminal ? (text: string) => escapeShellWord(text, unsafeCharacters) : quoteShellWord
  const how = method === 'HEAD' ? '--head' : `--request ${method}`
  const lines = [`curl --silent --show-error ${how} ${quote(url)}`]
  if (/[[\]{}]/.test(url)) lines.push('--globoff')
  // Without this flag, curl would write a stream to a pipe in blocks of 4 KiB.
  if (headers.Accept?.startsWith('text/event-stream')) lines.push('--no-buffer')
  const { cacert, connectTimeout, deadline } = values
  if (cacert !== undefined) lines.push(`--cacert ${quote(cacert)}`)
  if (origins.connectTimeout?.source !== 'default') lines.push(`--connect-timeout ${connectTimeout}`)
  if (deadline > 0) lines.push(`--max-time ${deadline}`)
  for (const [name, value] of Object.entries(headers)) {
    if (!secretNames.includes(name)) lines.push(`--header ${quote(`${name}: ${value}`)}`)
  }
  for (const name of removedHeaders) lines.push(`--header '${name.replaceAll("'", "'\\''")}:'`)
  const secrets = [
    ...(credential ? [`${credential.header}: ${credential.prefix}$${variable}`] : []),
    ...secretNames.map((name) => `${name.replaceAll(/[$`]/g, '\\$&')}: $${variableFor(name)}`),
  ]
  if (secrets.length > 0) lines.push('--header @-')
  const text = quote(toShellText(body ?? new Uint8Array()))
  const isLong = body !== undefined && body.length > maxArgumentBytes
  // With --data-binary, a body that begins with @ would be the name of a file.
  if (body) lines.push(isLong ? '--data-binary @/dev/fd/3' : `--data-raw ${text}`)
  // curl would wait a second for `100 Continue` before it sends a long body.
  if (isLong) lines.push("--header 'Expect:'")

  const printSecrets =
    secrets.length > 0 ? `printf '%s\\n' ${secrets.map((header) => `"${header}"`).join(' ')} | ` : ''
  const command = `${printSecrets}${lines.join(' \\\n  ')}`
  return isLong ? `printf %s ${text} | { ${command}; } 3<&0\n` : `${command}\n`
}

function toShellText(body: Uint8Array): string {
  if (!isUtf8(body) || body.includes(0)) throw usageError('--curl: the body is not text; --dry-run shows it')
  return Buffer.from(body).toString()
}

const variableFor = (name: string): string => name.toUpperCase().replace(/^\d|\W/g, '_')
