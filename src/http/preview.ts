import type { Context } from '../context.ts'
import { escapeJson } from '../io/escape.ts'
import { tryDecodeUtf8 } from '../io/utf8.ts'
import type { Secrets } from '../secrets.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { variableOf } from '../settings/table.ts'
import { tryParseJson } from '../wire/json/parse.ts'
import { onOneLine } from '../wire/page.ts'
import { curlVariables, toCurl } from './curl.ts'
import type { Draft } from './draft.ts'

/** Prints a request that is not to be sent: as a command with `--curl`, else as JSON, one of many on one line. */
export async function previewRequest(
  { flags, output, note, secrets }: Context,
  settings: ResolvedSettings,
  { draft, isOneOfMany }: { draft: Draft; isOneOfMany: boolean },
): Promise<void> {
  const setting = draft.credential?.setting
  const { isTerminal } = output
  if (flags.curl) {
    const own = setting && settings.origins[setting]?.source !== 'environment' ? [variableOf(setting)] : []
    const variables = [...own, ...curlVariables(draft)]
    if (variables.length > 0) note(`set ${variables.join(' and ')} before running it`)
    await output.write(toCurl(draft, variableOf(setting ?? 'accessToken'), isTerminal))
  } else {
    const json = isOneOfMany ? toLine(draft, secrets) : toDryRun(draft, secrets)
    await output.write(isTerminal ? showJson(json) : json)
  }
  await output.flush()
}

/** In JSON a carriage return is only white space, but on a terminal what follows it would cover the line. */
const showJson = (json: string): string => escapeJson(json.replace(/\r\n?/g, '\n'))

/** The request as JSON text, secrets redacted; the body's JSON stays exactly as it is. */
function toDryRun(draft: Draft, secrets: Secrets): string {
  const { method, url, body } = draft
  const shown = headersOf(draft, secrets)
  const fields = [
    `"method": ${JSON.stringify(method)}`,
    `"url": ${JSON.stringify(secrets.redact(url))}`,
    `"headers": ${JSON.stringify(shown, null, 2).replaceAll('\n', '\n  ')}`,
    ...(body ? [`"body": ${bodyAsJson(body)}`] : []),
  ]
  return `{\n  ${fields.join(',\n  ')}\n}\n`
}

function toLine(draft: Draft, secrets: Secrets): string {
  const { method, url, body } = draft
  const head = JSON.stringify({ method, url: secrets.redact(url), headers: headersOf(draft, secrets) })
  return body ? `${head.slice(0, -1)},"body":${onOneLine(bodyAsJson(body))}}\n` : `${head}\n`
}

const headersOf = ({ credential, headers }: Draft, { redactHeaders }: Secrets): Record<string, string> =>
  redactHeaders({
    ...(credential ? { [credential.header]: `${credential.prefix}[redacted]` } : {}),
    ...headers,
  })

function bodyAsJson(body: Uint8Array): string {
  const text = tryDecodeUtf8(body)
  if (text === undefined) return JSON.stringify({ base64: Buffer.from(body).toString('base64') })
  return tryParseJson(text) === undefined ? JSON.stringify(text) : text.trim()
}
