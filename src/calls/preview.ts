import { tryParseJson } from '../wire/json/parse.ts'
import type { Draft } from './draft.ts'

/** By its name alone, so rather one header too many; but what tells of a limit only counts tokens. */
function isSecret(name: string): boolean {
  if (/^(www|proxy)-authenticate$/i.test(name)) return false
  if (/rate-?limit/i.test(name) && /-(limit|remaining|reset)$/i.test(name)) return false
  return /key|token|secret|auth|passw|cookie|credential|signature/i.test(name)
}

/** Headers as they may be shown: secrets as `[redacted]`. */
export function redactHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      isSecret(name) ? value.replace(/^(Bearer |Basic )?.*/s, '$1[redacted]') : value,
    ]),
  )
}

/** The secrets in headers, each as a service may repeat it: a credential without its scheme, a cookie without its name. */
export function findSecrets(headers: Record<string, string>): string[] {
  return Object.entries(headers)
    .filter(([name]) => isSecret(name))
    .flatMap(([name, value]) =>
      /^cookie$/i.test(name)
        ? value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
        : [value, value.replace(/^[\w-]+ +/, '')],
    )
}

/** The request as JSON text, secrets redacted; the body's JSON stays as it is, to the letter. */
export function toDryRun(draft: Draft): string {
  const { method, url, headers, body, credential } = draft
  const shown = redactHeaders({
    ...(credential ? { [credential.header]: `${credential.prefix}[redacted]` } : {}),
    ...headers,
  })
  const fields = [
    `"method": ${JSON.stringify(method)}`,
    `"url": ${JSON.stringify(url)}`,
    `"headers": ${JSON.stringify(shown, null, 2).replaceAll('\n', '\n  ')}`,
    ...(body ? [`"body": ${bodyAsJson(body)}`] : []),
  ]
  return `{\n  ${fields.join(',\n  ')}\n}\n`
}

function bodyAsJson(body: Uint8Array): string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return JSON.stringify({ base64: Buffer.from(body).toString('base64') })
  }
  return tryParseJson(text) === undefined ? JSON.stringify(text) : text.trim()
}

/** In bytes: beyond this, a body does not fit into an argument on every system. */
const longestArgument = 100 * 1024

/**
 * The request as a shell command. Secrets come from the environment through curl's standard input, so that they
 * never stand among a process's arguments; a long body comes through the shell's own printf, which has no limit.
 * For a terminal, what could control it is written in escapes that bash and zsh read.
 */
export function toCurl(draft: Draft, variable: string, isTerminal: boolean): string {
  const { method, url, headers, body, credential } = draft
  const quote = isTerminal ? (text: string) => shellQuote(text, unsafe) : plainQuote
  const lines = [`curl --silent --show-error --request ${method} ${quote(url)}`]
  if (/[[\]{}]/.test(url)) lines.push('--globoff')
  for (const [name, value] of Object.entries(headers)) {
    if (isSecret(name)) continue
    lines.push(`--header ${quote(value === '' ? `${name};` : `${name}: ${value}`)}`)
  }
  const secrets = [
    ...(credential ? [`${credential.header}: ${credential.prefix}$${variable}`] : []),
    ...secretNames(headers).map((name) => `${name.replaceAll(/[$`]/g, '\\$&')}: $${variableFor(name)}`),
  ]
  if (secrets.length > 0) lines.push('--header @-')
  const text = quote(Buffer.from(body ?? []).toString('utf8'))
  const isLong = body !== undefined && body.length > longestArgument
  if (body) lines.push(`--data-binary ${isLong ? '@/dev/fd/3' : text}`)
  // Before a long body curl would ask for leave.
  if (isLong) lines.push("--header 'Expect:'")

  const printSecrets =
    secrets.length > 0 ? `printf '%s\\n' ${secrets.map((header) => `"${header}"`).join(' ')} | ` : ''
  const command = `${printSecrets}${lines.join(' \\\n  ')}`
  return isLong ? `printf %s ${text} | { ${command}; } 3<&0\n` : `${command}\n`
}

const secretNames = (headers: Draft['headers']) => Object.keys(headers).filter(isSecret)

/** The variables that `toCurl`'s command reads for headers of the person's own. */
export const curlVariables = ({ headers }: Draft): string[] => secretNames(headers).map(variableFor)

/** `X-Api-Key` is read from `$X_API_KEY`; a header's name may hold more than a variable's. */
const variableFor = (name: string): string => name.toUpperCase().replace(/^\d|\W/g, '_')

const bare = /^[\w@%+:,./-][\w@%+=:,./-]*$/

const plainQuote = (text: string): string => (bare.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

/** What could control a terminal; lines and tabs could not. */
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+/g

/** What a single line would not show as it is. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+|(?! )\s| {2,}/gu

/**
 * A word as a shell reads it back, byte for byte. What matches `hidden` is written in escapes, which bash and zsh know
 * but not every sh; by default that is all that a single line would not show as it is.
 */
export function shellQuote(text: string, hidden: RegExp = unseen): string {
  if (text.search(hidden) < 0) return plainQuote(text)
  const octal = (found: string) =>
    [...Buffer.from(found)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${text.replace(/[\\']/g, '\\$&').replace(hidden, octal)}'`
}
