import { isUtf8 } from 'node:buffer'
import { usage } from '../errors.ts'
import { unsafe } from '../io/escape.ts'
import { plainQuote, shellQuote } from '../io/shell-quote.ts'
import { isSecretHeader } from '../secrets.ts'
import type { Draft } from './draft.ts'

/** In bytes: beyond this, a body does not fit into an argument on every system. */
const longestArgument = 100 * 1024

/**
 * The request as a shell command. Secrets come from the environment through curl's standard input, so that they
 * are never among a process's arguments; a long body comes through the shell's own printf, which has no limit.
 * For a terminal, control characters are written as escapes, which bash and zsh read.
 */
export function toCurl(draft: Draft, variable: string, isTerminal: boolean): string {
  const { method, url, headers, body, credential, leftOut } = draft
  const quote = isTerminal ? (text: string) => shellQuote(text, unsafe) : plainQuote
  const how = method === 'HEAD' ? '--head' : `--request ${method}`
  const lines = [`curl --silent --show-error ${how} ${quote(url)}`]
  if (/[[\]{}]/.test(url)) lines.push('--globoff')
  for (const [name, value] of Object.entries(headers)) {
    if (isSecretHeader(name, value)) continue
    lines.push(`--header ${quote(`${name}: ${value}`)}`)
  }
  for (const name of leftOut) lines.push(`--header '${name.replaceAll("'", "'\\''")}:'`)
  const secrets = [
    ...(credential ? [`${credential.header}: ${credential.prefix}$${variable}`] : []),
    ...secretNames(headers).map((name) => `${name.replaceAll(/[$`]/g, '\\$&')}: $${variableFor(name)}`),
  ]
  if (secrets.length > 0) lines.push('--header @-')
  const text = quote(asText(body ?? new Uint8Array()))
  const isLong = body !== undefined && body.length > longestArgument
  // Text after --data-binary that begins with @ would be the name of a file.
  if (body) lines.push(isLong ? '--data-binary @/dev/fd/3' : `--data-raw ${text}`)
  // Before a long body curl would wait for `100 Continue`.
  if (isLong) lines.push("--header 'Expect:'")

  const printSecrets =
    secrets.length > 0 ? `printf '%s\\n' ${secrets.map((header) => `"${header}"`).join(' ')} | ` : ''
  const command = `${printSecrets}${lines.join(' \\\n  ')}`
  return isLong ? `printf %s ${text} | { ${command}; } 3<&0\n` : `${command}\n`
}

/** Throws a usage error for bytes that no shell's word can have. */
function asText(body: Uint8Array): string {
  if (!isUtf8(body) || body.includes(0)) throw usage('--curl: the body is not text; --dry-run shows it')
  return Buffer.from(body).toString()
}

const secretNames = (headers: Draft['headers']) =>
  Object.keys(headers).filter((name) => isSecretHeader(name, headers[name] ?? ''))

/** The variables that `toCurl`'s command reads for secret headers of `-H`. */
export const curlVariables = ({ headers }: Draft): string[] => secretNames(headers).map(variableFor)

/** `X-Api-Key` is read from `$X_API_KEY`; a header's name may have characters that a variable's may not. */
const variableFor = (name: string): string => name.toUpperCase().replace(/^\d|\W/g, '_')
