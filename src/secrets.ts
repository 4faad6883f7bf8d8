import { CliError } from './errors.ts'

/** The secrets of a run, which no text on stderr shows. */
export class Secrets {
  readonly #secrets = new Map<string, Secret>()

  add(secret: string): void {
    if (secret.length >= shortest && !this.#secrets.has(secret)) this.#secrets.set(secret, new Secret(secret))
  }

  /** A text without the secrets, which a service may repeat, and without passwords and keys in URLs. */
  readonly redact = (text: string): string =>
    this.#without(text)
      .replace(/([/\\]{2})[^\s/\\?#]*@/g, '$1[redacted]@')
      .replace(/([?&#][\w.-]*(?:key|token|secret|password|signature)=)[^\s&#"'\\]+/gi, '$1[redacted]')

  #without(text: string): string {
    if (this.#secrets.size === 0) return text
    const read = readEscapes(text)
    const places = [...this.#secrets.values()].flatMap((secret) => secret.placesIn({ text }, read))
    let shown = ''
    let end = 0
    // Of secrets that overlap nothing stays, as when one is the beginning of the other.
    for (const place of places.sort((one, other) => one.start - other.start)) {
      if (place.start >= end) shown += `${text.slice(end, place.start)}[redacted]`
      end = Math.max(end, place.end)
    }
    return shown + text.slice(end)
  }

  /**
   * The same of all texts, names and numbers in a value of JSON. To be called before it is written as JSON, of which a quote
   * might be lost, and before a text is cut: half a secret is a secret too.
   */
  readonly redactValue = (value: unknown, depth = 0): unknown => {
    if (typeof value === 'string') return this.redact(value)
    if (typeof value === 'number') return this.redact(`${value}`) === `${value}` ? value : '[redacted]'
    if (typeof value !== 'object' || value === null) return value
    if (depth === deepest) return '…'
    const inner = (each: unknown) => this.redactValue(each, depth + 1)
    if (Array.isArray(value)) return value.map(inner)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [this.redact(key), inner(each)]))
  }

  /** Headers as they may be shown: one that is a secret has the value `[redacted]`. */
  redactHeaders(headers: Record<string, string>): Record<string, string> {
    const shown = Object.entries(headers).map(([name, value]) => {
      const isSecret = isSecretHeader(name, value)
      return [name, this.redact(isSecret ? value.replace(/(Bearer |Basic )?.*/is, '$1[redacted]') : value)]
    })
    return Object.fromEntries(shown)
  }

  /** A failure as it may be shown. Bytes and heads of answers are for `--raw` and `api` alone. */
  redactFailure({ kind, message, details }: CliError): CliError {
    const { rawBody: _, head: __, ...shown } = details
    const redacted = Object.entries(shown).map(([name, value]) => [name, this.redactValue(value)])
    return new CliError(kind, this.redact(message), Object.fromEntries(redacted))
  }
}

/** How many levels of a value are shown. */
const deepest = 200

/** Characters. A shorter secret may be a part of any word. */
const shortest = 4

interface SecretPlace {
  start: number
  end: number
}

/** What finds one secret in a text, however it is spelled there: as it is, escaped, or as a part of base64. */
class Secret {
  readonly #word: string
  /** As it is, and with its own escapes read. */
  readonly #words: ReadonlySet<string>
  readonly #cores: readonly string[]

  constructor(word: string) {
    this.#word = word
    this.#words = new Set([word, readEscapes(word).text].filter(({ length }) => length >= shortest))
    this.#cores = inBase64(word)
  }

  placesIn(spelled: Spelling, read: Spelling): SecretPlace[] {
    return [
      ...cutPlacesOf(this.#word, spelled.text),
      ...placesOf(this.#word, spelled),
      ...[...this.#words].flatMap((word) => placesOf(word, read)),
      ...[spelled, read].flatMap((text) => this.#cores.flatMap((core) => placesOf(core, text, /[\w+/=-]/))),
    ]
  }
}

/** A text, or what it means once its escapes are read. */
interface Spelling {
  text: string
  /** Where each character, and the end, stands in the text as it is. */
  starts?: readonly number[]
}

/** As JSON, URLs and markup have them. In JSON that stands in JSON there are more backslashes, so none counts. */
const escapes =
  /(?:%|\\+u0025)([0-9a-f]{2})|(?:&|\\+u0026)(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|apos|gt|lt|quot|sol));|\\+(?:u([0-9a-f]{4}))?/gi

const named: Record<string, string> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"', sol: '/' }

/** The text that the escapes of another one mean. */
function readEscapes(spelled: string): Spelling {
  const starts: number[] = []
  let text = ''
  let from = 0
  for (const found of spelled.matchAll(escapes)) {
    const { 0: whole, 1: percent, 2: hex, 3: decimal, 4: name, 5: json, index } = found
    const code = decimal ? Number(decimal) : Number.parseInt(percent ?? hex ?? json ?? '5c', 16)
    const char = named[name?.toLowerCase() ?? ''] ?? String.fromCharCode(code)
    const read = char === '\\' ? '' : char
    text += spelled.slice(from, index) + read
    for (; from < index + read.length; from++) starts.push(from)
    from = index + whole.length
  }
  text += spelled.slice(from)
  for (; from <= spelled.length; from++) starts.push(from)
  return { text, starts }
}

/** Where a word stands in the text as it is, with all characters around it that match `widened`. */
function placesOf(word: string, { text, starts }: Spelling, widened?: RegExp): SecretPlace[] {
  const places: SecretPlace[] = []
  let end = 0
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, end)) {
    end = at + word.length
    while (widened?.test(text[end] ?? '')) end++
    while (widened?.test(text[at - 1] ?? '')) at--
    places.push({ start: starts?.[at] ?? at, end: starts?.[end] ?? end })
  }
  return places
}

/** Where a text was cut in the middle of a word: half a secret before an ellipsis is a secret too. */
function cutPlacesOf(word: string, text: string): SecretPlace[] {
  const begin = word.slice(0, shortest)
  return [...text.matchAll(/…/g)].flatMap(({ index: end }) => {
    const before = text.slice(Math.max(0, end - word.length), end)
    for (let at = before.indexOf(begin); at >= 0; at = before.indexOf(begin, at + 1))
      if (word.startsWith(before.slice(at))) return { start: end - before.length + at, end }
    return []
  })
}

/** Fewer characters of base64 may be anything. */
const shortestCore = 6

/** What of a secret is the same in all base64 that holds it, for each place where it may begin in a group of bytes. */
function inBase64(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const cores = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const isRagged = (before + bytes.length) % 3 !== 0
    const core = text.slice(Math.ceil((before * 8) / 6), isRagged ? -1 : undefined)
    return [core, core.replaceAll('-', '+').replaceAll('_', '/')]
  })
  return [...new Set(cores)].filter(({ length }) => length >= shortestCore)
}

/**
 * Judged by its name, so some harmless headers count as secret; but a rate limit's headers only count tokens. One that
 * looks like a credential is a secret under any name.
 */
export function isSecretHeader(name: string, value: string): boolean {
  if (/^(www|proxy)-authenticate$/i.test(name)) return false
  if (isCredential(value)) return true
  if (/rate-?limit/i.test(name) && /-(limit|remaining|reset)$/i.test(name)) return false
  return /key|token|secret|auth|passw|cookie|credential|signature/i.test(name)
}

/** Whether a header's value is a bearer or basic credential, or holds a JSON Web Token. */
function isCredential(value: string): boolean {
  const basic = /^\s*basic\s+(\S+)\s*$/i.exec(value)?.[1]
  if (basic !== undefined) return Buffer.from(basic, 'base64').includes(':')
  return /^\s*bearer\s+\S+\s*$/i.test(value) || /(?<![\w.-])eyJ[\w-]+\.[\w-]+\./.test(value)
}

/** The secrets in headers, each as a service may repeat it: a credential without its scheme, a cookie without its name. */
export function findSecrets(headers: Record<string, string>): string[] {
  return Object.entries(headers)
    .filter(([name, value]) => isSecretHeader(name, value))
    .flatMap(([name, value]) =>
      /^cookie$/i.test(name)
        ? value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
        : [value, value.replace(/^[\w-]+ +/, '')],
    )
}
