import { CliError } from './errors.ts'

export class Secrets {
  readonly #finders = new Map<string, SecretFinder>()
  #maxSecretLength = 0

  add(secret: string): void {
    if (secret.length < minSecretLength || this.#finders.has(secret)) return
    this.#finders.set(secret, createSecretFinder(secret))
    this.#maxSecretLength = Math.max(this.#maxSecretLength, secret.length)
  }

  /**
   * Replaces secrets, and passwords and keys in URLs. Redacts before it cuts to `maxLength` UTF-16 units,
   * because parley could not find a secret that was cut. Reads the text in blocks and only as far as needed, so
   * a long text needs little memory.
   */
  readonly redact = (text: string, maxLength = Infinity): string => {
    const blocks: string[] = []
    let length = 0
    for (let at = 0; at < text.length && length <= maxLength; ) {
      const { shown, end } = this.#redactBlock(text, at)
      blocks.push(shown)
      length += shown.length
      at = end
    }
    const shown = blocks.join('')
    return shown.length > maxLength ? `${shown.slice(0, maxLength)}…` : shown
  }

  /** Redacts a block. A secret that begins in the block may end after it, so `end` may be after the block. */
  #redactBlock(text: string, at: number): { shown: string; end: number } {
    const readAhead = maxAddressPartLength + this.#maxSecretLength * maxEscapeLength
    const part = text.slice(at, at + blockLength + readAhead)
    const limit = Math.min(blockLength, part.length)
    let shown = ''
    let end = 0
    // If one secret is the start of another, both overlap in the text and are replaced together.
    for (const place of this.#findReplacements(part)) {
      if (place.start >= Math.max(limit, end)) break
      if (place.start >= end) shown += part.slice(end, place.start) + place.shown
      end = Math.max(end, place.end)
    }
    return { shown: shown + part.slice(end, limit), end: at + Math.max(limit, end) }
  }

  #findReplacements(text: string): (SecretRange & { shown: string })[] {
    const inAddresses = addressSecrets.flatMap(([mark, pattern]) =>
      Array.from(text.includes(mark) ? text.matchAll(pattern) : [], ({ 0: whole, 1: name, index: start }) => {
        return { start, end: start + whole.length, shown: `${name}[redacted]` }
      }),
    )
    let read: SearchText | undefined
    const inText = [...this.#finders.values()].flatMap((find) => {
      read ??= resolveEscapes(text)
      return find({ text }, read)
    })
    const places = [...inAddresses, ...inText.map((place) => ({ ...place, shown: '[redacted]' }))]
    return places.sort((one, other) => one.start - other.start)
  }

  /**
   * Redacts strings, keys and numbers, and cuts the value after `maxLength` UTF-16 units in total. Runs
   * before serialization, because a replacement in JSON text could remove a quote.
   */
  readonly redactValue = (whole: unknown, maxLength = Infinity): unknown => {
    let left = maxLength
    const redactText = (text: string) => {
      const shown = this.redact(text, left)
      left -= shown.length
      return shown
    }
    const redactInner = (value: unknown, depth: number): unknown => {
      left--
      if (typeof value === 'string') return redactText(value)
      if (typeof value === 'number') return this.redact(`${value}`) === `${value}` ? value : '[redacted]'
      if (typeof value !== 'object' || value === null) return value
      if (depth === maxDepth) return '…'
      if (Array.isArray(value)) {
        const items: unknown[] = []
        for (let at = 0; at < value.length && left >= 0; at++) items.push(redactInner(value[at], depth + 1))
        return items
      }
      const fields: [name: string, value: unknown][] = []
      // `Object.entries` would copy all fields, even the fields after the limit.
      for (const name in value) {
        if (left < 0) break
        fields.push([redactText(name), redactInner((value as Record<string, unknown>)[name], depth + 1)])
      }
      return Object.fromEntries(fields)
    }
    return redactInner(whole, 0)
  }

  redactHeaders(headers: Record<string, string>): Record<string, string> {
    const shown = Object.entries(headers).map(([name, value]) => {
      const isSecret = isSecretHeader(name, value)
      return [name, this.redact(isSecret ? value.replace(/(Bearer |Basic )?.*/is, '$1[redacted]') : value)]
    })
    return Object.fromEntries(shown)
  }

  /**
   * Redacts and shortens the body and all texts. An answer that no file contains keeps its length. Removes
   * the response, because only `--raw` and `api` print it.
   */
  redactFailure({ kind, message, details }: CliError): CliError {
    const { response: _, ...shown } = details
    const redacted = Object.entries(shown).map(([name, value]) => {
      const isOnlyCopy = name === 'answer' && !details.savedFiles?.length
      if (typeof value === 'string')
        return [name, this.redact(value, isOnlyCopy ? Infinity : maxFailureTextLength)]
      return [name, this.redactValue(value, name === 'body' ? maxBodyLength : Infinity)]
    })
    return new CliError(kind, this.redact(message, maxFailureTextLength), Object.fromEntries(redacted))
  }
}

const blockLength = 256 * 1024

/** Maximum length of one escaped UTF-16 unit. JSON within JSON escapes a unit several times. */
const maxEscapeLength = 64

/** Maximum UTF-16 units of a secret in a URL. At the end of a block, a longer secret may be missed. */
const maxAddressPartLength = 4096

/** Maximum lengths of each text of a failure, and of all texts of its body together, in UTF-16 units. */
const maxFailureTextLength = 64 * 1024
const maxBodyLength = 1024 * 1024

const maxDepth = 200

/** A shorter secret occurs in many words by chance, so it is not redacted. */
const minSecretLength = 4

interface SecretRange {
  start: number
  end: number
}

/**
 * Matches user info in a URL, and query values such as `api_key=…`. The first group, which is not secret,
 * stays in the redacted text. A colon at the end of a value belongs to the message around the URL. A pattern
 * is used only if the text contains its `mark`, because compiling both patterns takes 2 % of the time of a
 * usage error.
 */
const addressSecrets: [mark: string, pattern: RegExp][] = [
  ['@', /([/\\]{2})[^\s/\\?#]*(?=@)/g],
  ['=', /([?&#][\w.-]*(?:key|token|secret|password|signature)=)[^\s&#"'\\]+(?<!:)/gi],
]

type SecretFinder = (original: SearchText, read: SearchText) => SecretRange[]

function createSecretFinder(secret: string): SecretFinder {
  const words = new Set(
    [secret, resolveEscapes(secret).text].filter(({ length }) => length >= minSecretLength),
  )
  const base64Parts = findBase64Parts(secret)
  return (original, read) => [
    ...findCutWord(secret, original.text),
    ...findWord(secret, original),
    ...[...words].flatMap((word) => findWord(word, read)),
    ...[original, read].flatMap((text) => base64Parts.flatMap((part) => findWord(part, text, /[\w+/=-]/))),
  ]
}

/** The original text, or the text with its escapes resolved. */
interface SearchText {
  text: string
  /** Offset of each character, and of the end, in the original text. Omitted for the original text. */
  starts?: readonly number[]
}

/** Escapes of JSON, URLs and HTML. JSON within JSON has more backslashes, so any number of them matches. */
const escapes =
  /(?:%|\\+u0025)([0-9a-f]{2})|(?:&|\\+u0026)(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(amp|apos|gt|lt|quot|sol));|\\+(?:u([0-9a-f]{4}))?/gi

const namedEntities: Record<string, string> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"', sol: '/' }

function resolveEscapes(original: string): SearchText {
  const starts: number[] = []
  let text = ''
  let from = 0
  for (const found of original.matchAll(escapes)) {
    const { 0: whole, 1: percent, 2: hex, 3: decimal, 4: name, 5: json, index } = found
    const code = decimal ? Number(decimal) : Number.parseInt(percent ?? hex ?? json ?? '5c', 16)
    const char = namedEntities[name?.toLowerCase() ?? ''] ?? String.fromCharCode(code)
    const read = char === '\\' ? '' : char
    text += original.slice(from, index) + read
    for (; from < index + read.length; from++) starts.push(from)
    from = index + whole.length
  }
  text += original.slice(from)
  for (; from <= original.length; from++) starts.push(from)
  return { text, starts }
}

/**
 * Returns the occurrences of a word, with offsets in the original text. Extends each occurrence by the
 * adjacent characters that match `widened`.
 */
function findWord(word: string, { text, starts }: SearchText, widened?: RegExp): SecretRange[] {
  const places: SecretRange[] = []
  let end = 0
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, end)) {
    end = at + word.length
    while (widened?.test(text[end] ?? '')) end++
    while (widened?.test(text[at - 1] ?? '')) at--
    places.push({ start: starts?.[at] ?? at, end: starts?.[end] ?? end })
  }
  return places
}

/**
 * Finds the start of a secret before an ellipsis, because a service may shorten its message inside a secret.
 */
function findCutWord(word: string, text: string): SecretRange[] {
  const begin = word.slice(0, minSecretLength)
  return [...text.matchAll(/…|\.{3}/g)].flatMap(({ index: end }) => {
    const before = text.slice(Math.max(0, end - word.length), end)
    for (let at = before.indexOf(begin); at >= 0; at = before.indexOf(begin, at + 1))
      if (word.startsWith(before.slice(at))) return { start: end - before.length + at, end }
    return []
  })
}

/** A shorter part occurs in many texts by chance, so it is not redacted. */
const minBase64PartLength = 6

/**
 * Returns texts that occur in the base64 form of data that contains the secret. The characters depend on the
 * position of the secret in a group of three bytes, so there is one text for each position. Characters that
 * also encode adjacent bytes are left out.
 */
function findBase64Parts(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const parts = [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64url')
    const isRagged = (before + bytes.length) % 3 !== 0
    const part = text.slice(Math.ceil((before * 8) / 6), isRagged ? -1 : undefined)
    return [part, part.replaceAll('-', '+').replaceAll('_', '/')]
  })
  return [...new Set(parts)].filter(({ length }) => length >= minBase64PartLength)
}

/**
 * Returns true if the name has a word such as `key` or `token`. This includes the names of some harmless
 * headers. A value that looks like a credential is secret under any name.
 */
export function isSecretHeader(name: string, value: string): boolean {
  if (/^(www|proxy)-authenticate$/i.test(name)) return false
  if (isCredential(value)) return true
  if (/rate-?limit/i.test(name) && /-(limit|remaining|reset)$/i.test(name)) return false
  return /key|token|secret|auth|passw|cookie|credential|signature/i.test(name)
}

function isCredential(value: string): boolean {
  const basic = /^\s*basic\s+(\S+)\s*$/i.exec(value)?.[1]
  if (basic !== undefined) return Buffer.from(basic, 'base64').includes(':')
  return /^\s*bearer\s+\S+\s*$/i.test(value) || /(?<![\w.-])eyJ[\w-]+\.[\w-]+\./.test(value)
}

/**
 * A service may quote a credential without its scheme, and a cookie without its name, so these forms are
 * returned, too.
 */
export function findHeaderSecrets(headers: Record<string, string>): string[] {
  return Object.entries(headers)
    .filter(([name, value]) => isSecretHeader(name, value))
    .flatMap(([name, value]) =>
      /^cookie$/i.test(name)
        ? value.split(/;\s*/).map((cookie) => cookie.slice(cookie.indexOf('=') + 1))
        : [value, value.replace(/^[\w-]+ +/, '')],
    )
}
