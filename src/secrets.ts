import { CliError } from './errors.ts'

/** The secrets of a run, which no text on stderr shows. */
export interface Secrets {
  add(secret: string): void
  /** A text without the secrets, which a service may repeat, and without passwords and keys in URLs. */
  redact(text: string): string
  /** Headers as they may be shown: a header that is secret by its name has the value `[redacted]`. */
  redactHeaders(headers: Record<string, string>): Record<string, string>
  /** A failure without secrets in its texts. To be called before a text is cut: half a secret is a secret too. */
  redactFailure(failure: CliError): CliError
}

export function createSecrets(): Secrets {
  const secrets = new Set<string>()
  const redact = (text: string) => redactUrls([...secrets].reduce(without, text))

  return {
    add: (secret) => void secrets.add(secret),
    redact,
    redactHeaders: (headers) =>
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [
          name,
          redact(isSecretHeader(name) ? value.replace(/^(Bearer |Basic )?.*/s, '$1[redacted]') : value),
        ]),
      ),
    redactFailure(failure) {
      const { serviceMessage, requestId, problems, body } = failure.details
      return new CliError(failure.kind, redact(failure.message), {
        ...failure.details,
        serviceMessage: serviceMessage && redact(serviceMessage),
        requestId: requestId && redact(requestId),
        problems: problems?.map(redact),
        body: redactJson(body, redact),
      })
    },
  }
}

/** Characters. A shorter secret may be a part of any word. */
const shortest = 4

/** A text without a secret, also as JSON or a URL spells it. */
function without(text: string, secret: string): string {
  if (secret.length < shortest) return text
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]
  return forms.reduce((shown, form) => shown.replaceAll(form, '[redacted]'), text)
}

const redactUrls = (text: string): string =>
  text
    .replace(/((?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2})[^\s/\\?#"]*@/gi, '$1[redacted]@')
    .replace(/([?&#][\w.-]*(?:key|token|secret|password|signature)=)[^\s&#"'\\]+/gi, '$1[redacted]')

/** Levels of a body that are shown: with many more, it could not be written as JSON. */
const deepest = 200

function redactJson(value: unknown, redact: Secrets['redact'], depth = 0): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'number') return redact(String(value)) === String(value) ? value : '[redacted]'
  if (typeof value !== 'object' || value === null) return value
  if (depth === deepest) return '…'
  const inner = (each: unknown) => redactJson(each, redact, depth + 1)
  if (Array.isArray(value)) return value.map(inner)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [redact(key), inner(each)]))
}

/** Judged by its name, so some harmless headers count as secret. But a rate limit's headers only count tokens. */
export function isSecretHeader(name: string): boolean {
  if (/^(www|proxy)-authenticate$/i.test(name)) return false
  if (/rate-?limit/i.test(name) && /-(limit|remaining|reset)$/i.test(name)) return false
  return /key|token|secret|auth|passw|cookie|credential|signature/i.test(name)
}

/** The secrets in headers, each as a service may repeat it: a credential without its scheme, a cookie without its name. */
export function findSecrets(headers: Record<string, string>): string[] {
  return Object.entries(headers)
    .filter(([name]) => isSecretHeader(name))
    .flatMap(([name, value]) =>
      /^cookie$/i.test(name)
        ? value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
        : [value, value.replace(/^[\w-]+ +/, '')],
    )
}
