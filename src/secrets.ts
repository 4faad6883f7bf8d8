import { CliError } from './errors.ts'

/** The secrets of a run, which no text on stderr shows. */
export class Secrets {
  readonly #secrets = new Set<string>()

  add(secret: string): void {
    this.#secrets.add(secret)
  }

  /** A text without the secrets, which a service may repeat, and without passwords and keys in URLs. */
  readonly redact = (text: string): string => redactUrls(without(text, this.#secrets), userInfo)

  /** The same for JSON text, which stays JSON. */
  readonly redactJson = (json: string): string => redactUrls(without(json, this.#secrets), userInfoInJson)

  /** Headers as they may be shown: one that is a secret has the value `[redacted]`. */
  redactHeaders(headers: Record<string, string>): Record<string, string> {
    const shown = Object.entries(headers).map(([name, value]) => {
      const isSecret = isSecretHeader(name, value)
      return [name, this.redact(isSecret ? value.replace(/(Bearer |Basic )?.*/is, '$1[redacted]') : value)]
    })
    return Object.fromEntries(shown)
  }

  /** A failure without secrets in its texts. To be called before a text is cut: half a secret is a secret too. */
  redactFailure({ kind, message, details }: CliError): CliError {
    const { redact } = this
    const { serviceMessage, requestId, problems, answer, body } = details
    return new CliError(kind, redact(message), {
      ...details,
      serviceMessage: serviceMessage && redact(serviceMessage),
      requestId: requestId && redact(requestId),
      problems: problems?.map(redact),
      answer: answer && redact(answer),
      body: redactValue(body, redact),
    })
  }
}

/** Characters. A shorter secret may be a part of any word. */
const shortest = 4

/** A text without secrets, however they are spelled in it: as they are, escaped, or as a part of base64. */
function without(text: string, secrets: ReadonlySet<string>): string {
  const all = [...secrets].filter(({ length }) => length >= shortest)
  if (all.length === 0) return text
  const encoded = all.flatMap(inBase64)
  const cut = all.flatMap((secret) => cutPlacesOf(secret, text))
  const places = spellingsOf(text).flatMap((spelling) => [
    ...all.flatMap((secret) => placesOf(secret, spelling)),
    ...encoded.flatMap((core) => placesOf(core, spelling, /[\w+/=-]/)),
  ])
  let shown = ''
  let end = 0
  // Of secrets that overlap nothing stays, as when one is the beginning of the other.
  for (const place of [...places, ...cut].sort((one, other) => one.start - other.start)) {
    if (place.start >= end) shown += `${text.slice(end, place.start)}[redacted]`
    end = Math.max(end, place.end)
  }
  return shown + text.slice(end)
}

/** A text, or what it means once its escapes are read. */
interface Spelling {
  text: string
  /** Where each character, and the end, stands in the text as it is. */
  starts?: readonly number[]
  /** Where each escape in the text as it is begins and ends: no part of one may stay. */
  whole?: readonly number[]
}

/** As JSON has them. */
const backslashes = /\\(?:u([0-9a-f]{4})|([^u]))/gi

/** As URLs and markup have them. */
const codes = /%([0-9a-f]{2})|&#x([0-9a-f]{1,6});|&#(\d{1,7});|&(amp|apos|gt|lt|quot|sol);/gi

const named: Record<string, string> = { amp: '&', apos: "'", gt: '>', lt: '<', quot: '"', sol: '/' }

const character = (code: string | undefined, base: number) =>
  String.fromCharCode(Number.parseInt(code ?? '', base))

const readBackslashes = (spelling: Spelling) =>
  readEscapes(spelling, backslashes, ([, code, char]) => char ?? character(code, 16))

const readCodes = (spelling: Spelling) =>
  readEscapes(spelling, codes, ([, percent, hex, decimal, name]) => {
    if (name !== undefined) return named[name.toLowerCase()] ?? ''
    return decimal === undefined ? character(percent ?? hex, 16) : character(decimal, 10)
  })

/** What a text may mean: with and without its escapes, and without those in these, for JSON may stand in JSON. */
function spellingsOf(text: string): Spelling[] {
  const read = readBackslashes({ text })
  const all = [
    { text, whole: read?.starts },
    read,
    readCodes(read ?? { text }),
    read && readCodes({ text }),
    read && readBackslashes(read),
  ]
  return all.filter((spelling) => spelling !== undefined)
}

/** The same text with its escapes read, if there are any. */
function readEscapes(
  { text, starts }: Spelling,
  escapes: RegExp,
  meaning: (found: RegExpMatchArray) => string,
): Spelling | undefined {
  const pieces: string[] = []
  const places: number[] = []
  let end = 0
  const addPlain = (until: number) => {
    pieces.push(text.slice(end, until))
    for (let at = end; at < until; at++) places.push(starts?.[at] ?? at)
  }
  for (const found of text.matchAll(escapes)) {
    addPlain(found.index)
    pieces.push(meaning(found))
    places.push(starts?.[found.index] ?? found.index)
    end = found.index + found[0].length
  }
  if (end === 0) return undefined
  addPlain(text.length)
  places.push(starts?.[text.length] ?? text.length)
  return { text: pieces.join(''), starts: places }
}

interface SecretPlace {
  start: number
  end: number
}

/** Where a word stands in the text as it is, with all characters around it that match `widened`. */
function placesOf(word: string, { text, starts, whole }: Spelling, widened?: RegExp): SecretPlace[] {
  const places: SecretPlace[] = []
  let from = 0
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, from)) {
    let end = at + word.length
    while (widened?.test(text[end] ?? '')) end++
    while (widened?.test(text[at - 1] ?? '')) at--
    from = end
    places.push({
      start: whole?.[lastUpTo(whole, at)] ?? starts?.[at] ?? at,
      end: whole?.[lastUpTo(whole, end - 1) + 1] ?? starts?.[end] ?? end,
    })
  }
  return places
}

/** Where a text was cut in the middle of a word: half a secret before an ellipsis is a secret too. */
function cutPlacesOf(word: string, text: string): SecretPlace[] {
  const places: SecretPlace[] = []
  for (const { index: end } of text.matchAll(/…/g)) {
    const before = text.slice(Math.max(0, end - word.length), end)
    for (
      let at = before.indexOf(word.slice(0, shortest));
      at >= 0;
      at = before.indexOf(word.slice(0, shortest), at + 1)
    ) {
      if (!word.startsWith(before.slice(at))) continue
      places.push({ start: end - before.length + at, end })
      break
    }
  }
  return places
}

/** The index of the last of ascending numbers that is not above a limit. */
function lastUpTo(numbers: readonly number[], limit: number): number {
  let [low, end] = [0, numbers.length]
  while (end - low > 1) {
    const middle = Math.floor((low + end) / 2)
    if ((numbers[middle] ?? 0) <= limit) low = middle
    else end = middle
  }
  return low
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

/** A user name and a password may hold a quote; in JSON text a bare one ends the string that the address is in. */
const userInfo = /([/\\]{2})[^\s/\\?#]*@/g
const userInfoInJson = /([/\\]{2})(?:[^\s/\\?#"]|\\")*@/g

const redactUrls = (text: string, pattern: RegExp): string =>
  text
    .replace(pattern, '$1[redacted]@')
    .replace(/([?&#][\w.-]*(?:key|token|secret|password|signature)=)[^\s&#"'\\]+/gi, '$1[redacted]')

/** Levels of a body that are shown: with many more, it could not be written as JSON. */
const deepest = 200

function redactValue(value: unknown, redact: Secrets['redact'], depth = 0): unknown {
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'number') return redact(String(value)) === String(value) ? value : '[redacted]'
  if (typeof value !== 'object' || value === null) return value
  if (depth === deepest) return '…'
  const inner = (each: unknown) => redactValue(each, redact, depth + 1)
  if (Array.isArray(value)) return value.map(inner)
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [redact(key), inner(each)]))
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
