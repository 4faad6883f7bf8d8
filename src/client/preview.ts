import type { Draft } from './request.ts'

const secretHeader = /(^|-)(authorization|cookie|api-?key|token|secret|password)$/i

/** Headers as they may be shown: secrets as `[redacted]`. */
export function redactHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      secretHeader.test(name) ? value.replace(/^(Bearer |Basic )?.*/s, '$1[redacted]') : value,
    ]),
  )
}

/** The secrets in headers, each as a service may repeat it: a credential without its scheme, a cookie without its name. */
export function findSecrets(headers: Record<string, string>): string[] {
  return Object.entries(headers)
    .filter(([name]) => secretHeader.test(name))
    .flatMap(([name, value]) =>
      /^cookie$/i.test(name)
        ? value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
        : [value.replace(/^(Bearer|Basic) +/i, '')],
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
  try {
    JSON.parse(text)
    return text.trim()
  } catch {
    return JSON.stringify(text)
  }
}

/** In bytes: beyond this, a body does not fit into an argument on every system. */
const longestArgument = 100 * 1024

/**
 * The request as a shell command. Secrets come from the environment through curl's standard input, so that they
 * never stand among a process's arguments; a long body comes through the shell's own printf, which has no limit.
 */
export function toCurl(draft: Draft, variable: string): string {
  const { method, url, headers, body, credential } = draft
  const lines = [`curl --silent --show-error --request ${method} ${quote(url)}`]
  if (/[[\]{}]/.test(url)) lines.push('--globoff')
  for (const [name, value] of Object.entries(headers)) {
    if (secretHeader.test(name)) continue
    lines.push(`--header ${quote(value === '' ? `${name};` : `${name}: ${value}`)}`)
  }
  const secrets = [
    ...(credential ? [`${credential.header}: ${credential.prefix}$${variable}`] : []),
    ...Object.keys(headers)
      .filter((name) => secretHeader.test(name))
      .map((name) => `${name}: $${name.toUpperCase().replaceAll('-', '_')}`),
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

const quote = (text: string): string =>
  /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
