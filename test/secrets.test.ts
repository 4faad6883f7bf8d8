import { describe, expect, test } from 'vitest'
import { CliError } from '../src/errors.ts'
import { findHeaderSecrets, isSecretHeader, Secrets } from '../src/secrets.ts'

function createSecrets(...all: string[]) {
  const secrets = new Secrets()
  for (const each of all) secrets.add(each)
  return secrets
}

describe('parley redacts secrets in a text', () => {
  test.each<[what: string, secrets: string[], text: string, shown: string]>([
    ['nothing if there are no secrets', [], 'a text', 'a text'],
    ['a secret anywhere', ['abcd'], 'abcd x abcd y', '[redacted] x [redacted] y'],
    ['a secret twice in a row', ['abcd'], 'abcdabcd', '[redacted][redacted]'],
    ['a secret of four characters, but no shorter one', ['abc', 'wxyz'], 'abc wxyz', 'abc [redacted]'],
    ['no decoded form of fewer than four characters', ['%41b'], 'Ab %41b', 'Ab [redacted]'],
    ['nothing if all secrets are too short', ['abc'], 'abc', 'abc'],
    ['several secrets in any order', ['zzzz', 'aaaa'], 'aaaa-zzzz', '[redacted]-[redacted]'],
    ['two secrets that overlap', ['abcdef', 'defghi'], 'xabcdefghix', 'x[redacted]x'],
    ['a secret that is the start of another secret', ['abcd', 'abcdefgh'], 'xabcdefghx', 'x[redacted]x'],
    ['a secret that is inside another secret', ['abcdefgh', 'cdef'], 'xabcdefghx', 'x[redacted]x'],
    ['a secret that is the end of another secret', ['efgh', 'abcdefgh'], 'xabcdefghx', 'x[redacted]x'],
  ])('in a text, parley redacts %s', (_, secrets, text, shown) => {
    expect(createSecrets(...secrets).redact(text)).toBe(shown)
    expect(createSecrets(...secrets).redactValue([text, { [text]: 1 }])).toEqual([shown, { [shown]: 1 }])
  })

  const secret = `ca/n"<a>&r'y\\`
  const encode = (code: (char: string) => string) => [...secret].map(code).join('')
  const codeOf = (char: string, base: number) => char.charCodeAt(0).toString(base)
  const json = JSON.stringify(secret).slice(1, -1)

  test.each<[spelling: string, text: string]>([
    ['JSON', json],
    ['JSON in JSON', JSON.stringify(json).slice(1, -1)],
    ['JSON with escaped slashes', json.replaceAll('/', '\\/')],
    ['JSON escapes', encode((char) => `\\u${codeOf(char, 16).padStart(4, '0')}`)],
    ['JSON escapes in capitals', encode((char) => `\\u${codeOf(char, 16).padStart(4, '0').toUpperCase()}`)],
    ['percent-encoding', encodeURIComponent(secret)],
    ['lower-case percent-encoding', encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase())],
    ['percent-encoding in JSON', encodeURIComponent(secret).replaceAll('%', '\\u0025')],
    ['percent-encoding in JSON in JSON', encodeURIComponent(secret).replaceAll('%', '\\\\u0025')],
    ['percent-encoding of every character', encode((char) => `%${codeOf(char, 16)}`)],
    ['numeric HTML entities', encode((char) => `&#${codeOf(char, 10)};`)],
    ['numeric HTML entities with zeros', encode((char) => `&#${codeOf(char, 10).padStart(7, '0')};`)],
    ['hexadecimal HTML entities', encode((char) => `&#x${codeOf(char, 16)};`)],
    ['hexadecimal HTML entities with zeros', encode((char) => `&#X${codeOf(char, 16).padStart(6, '0')};`)],
    ['named HTML entities', 'ca&sol;n&quot;&lt;a&gt;&amp;r&apos;y\\'],
    ['named HTML entities in capitals', 'ca&SOL;n&QUOT;&LT;a&GT;&AMP;r&APOS;y\\'],
    ['HTML entities in JSON', 'ca\\u0026sol;n\\u0026quot;&lt;a&gt;&amp;r&apos;y\\\\'],
    ['HTML entities in JSON in JSON', 'ca\\\\u0026sol;n\\\\u0026quot;&lt;a&gt;&amp;r&apos;y\\\\'],
    ['percent-encoding with a plain backslash', `ca%2Fn%22%3Ca%3E%26r'y\\`],
  ])('parley redacts a secret that is encoded as %s', (_, text) => {
    const { redact } = createSecrets(secret)
    expect(redact(`<${text}>`)).toBe('<[redacted]>')
    // Escapes before, in and after the secret do not change which characters are redacted.
    const around = (inner: string) => `é\\n%20 ${inner} &lt;\\n ${inner} \\t&#33;.`
    expect(redact(around(text))).toBe(around('[redacted]'))
  })

  test('parley does not decode text that only looks like an escape', () => {
    const text = '%zz %4 &#; &#x; &#12345678; &#x1234567; &copy; \\u12 \\'
    expect(createSecrets('abcd').redact(text)).toBe(text)
    expect(createSecrets('a%b/').redact('%2 a%b%2f')).toBe('%2 [redacted]')
  })

  test.each(['pa%41ss%2Fword12', 'tok&lt;abc123'])('parley redacts a secret with escapes: %s', (literal) => {
    const encoded = [encodeURIComponent(literal), literal.replaceAll('&', '&amp;')]
    for (const text of encoded) expect(createSecrets(literal).redact(`t=${text}.`)).toBe('t=[redacted].')
  })
})

const manySecrets = ['canary-secret', 'canary-secret1', 'canary-secret12', '~~~???>>>~?~>', 'abcde']
test.each(manySecrets)('K41: parley redacts the secret %s in base64 at any offset', (secret) => {
  const { redact } = createSecrets(secret)
  for (const form of ['base64', 'base64url'] as const) {
    for (const before of ['', 'x', 'xy', 'me:', 'a longer name:']) {
      for (const after of ['', '.', '..', '...']) {
        const encoded = Buffer.from(before + secret + after).toString(form)
        expect(redact(`${encoded} ${encoded}`)).toBe('[redacted] [redacted]')
      }
    }
  }
})

test('parley leaves base64 text unchanged if it does not contain a whole secret', () => {
  const { redact } = createSecrets('canary-secret', 'abcd')
  for (const other of ['some words', 'canary-secre', 'abc']) {
    const encoded = Buffer.from(other).toString('base64')
    expect(redact(`<${encoded}>`)).toBe(`<${encoded}>`)
  }
  // Fewer than six characters of base64 occur in many texts by chance, so parley does not redact them.
  expect(redact(Buffer.from('x:abcd.').toString('base64'))).toBe(Buffer.from('x:abcd.').toString('base64'))
})

test.each([
  ['the start of a secret', 'no canar… here', 'no [redacted]… here'],
  ['four characters of a secret', 'no cana… here', 'no [redacted]… here'],
  ['no start of fewer than four characters', 'no can… here', 'no can… here'],
  ['the start of a secret before three dots', 'no canary-s... here', 'no [redacted]... here'],
  ['no start of a secret before one dot', 'no canary.', 'no canary.'],
  ['a whole secret', 'no canary-secret…', 'no [redacted]…'],
  ['a secret without its last character', 'canary-secre…', '[redacted]…'],
  ['only the start of a secret, no other word', 'a… canary… b… c', 'a… [redacted]… b… c'],
  ['the start of a secret after an earlier cut', '…no canary…', '…no [redacted]…'],
  ['each of several starts of a secret', 'canary… canary-s…', '[redacted]… [redacted]…'],
  ['only the second of two starts of a secret in a row', 'canacanar…', 'cana[redacted]…'],
  ['no start of a secret that continues as another word', 'canary, it is…', 'canary, it is…'],
])('before the ellipsis of a shortened text, parley redacts %s', (_, text, shown) => {
  expect(createSecrets('canary-secret').redact(text)).toBe(shown)
})

describe('parley redacts secrets in a long text', () => {
  const secret = 'canary-se/cret"1'
  const json = JSON.stringify(secret).slice(1, -1)
  const url = encodeURIComponent(secret)
  const codes = [...secret].map((char) => `\\\\u00${char.charCodeAt(0).toString(16)}`).join('')
  const long = 'z'.repeat(5000)
  const block = 2 ** 18

  test.each([
    ['verbatim', secret, '[redacted]'],
    ['in JSON', json, '[redacted]'],
    ['in a URL', url, '[redacted]'],
    ['longer than a key in a URL', long, '[redacted]'],
    ['as a password', 'https://user:pass@host', 'https://[redacted]@host'],
  ])('parley redacts a secret that crosses the boundary of two blocks of text: %s', (_, encoded, shown) => {
    const { redact } = createSecrets(long, secret)
    const step = Math.ceil(encoded.length / 10)
    for (let before = 0; before < encoded.length + step; before += step) {
      const start = ' '.repeat(block - before)
      expect(redact(`${start}${encoded} end`) === `${start}${shown} end`).toBe(true)
    }
  })

  test('parley redacts overlapping secrets at the boundary of two blocks of text as one secret', () => {
    const { redact } = createSecrets('abcdef', 'defghi', 'ghijkl')
    for (let before = 0; before <= 12; before += 3) {
      const start = ' '.repeat(block - before)
      expect(redact(`${start}abcdefghijkl end`) === `${start}[redacted] end`).toBe(true)
    }
  })

  test('a text that parley cuts shows no part of a secret in any encoding', () => {
    const whole = 'a text [redacted] and more'
    const { redact } = createSecrets(secret)
    for (const encoded of [secret, json, url, codes])
      for (let longest = 0; longest <= 40; longest++)
        expect(redact(`a text ${encoded} and more`, longest)).toBe(
          whole.length <= longest ? whole : `${whole.slice(0, longest)}…`,
        )
  })

  test('redaction does not read all of a long text that parley cuts', () => {
    let read = 0
    const text = Object.assign(Object('x'.repeat(2 ** 22)), {
      slice(start: number, end: number) {
        read = Math.max(read, end)
        return String.prototype.slice.call(this, start, end)
      },
    })
    expect(createSecrets(secret).redact(text, 10)).toBe(`${'x'.repeat(10)}…`)
    expect(read).toBeLessThan(2 ** 19)
  })
})

test.each([
  ['see https://u:p@h.test/ and ftp://u@h', 'see https://[redacted]@h.test/ and ftp://[redacted]@h'],
  ['git+ssh-1.x://u:p@h', 'git+ssh-1.x://[redacted]@h'],
  ['//u:p@h \\\\u:p@h', '//[redacted]@h \\\\[redacted]@h'],
  ['HTTPS://u:p@ss@h', 'HTTPS://[redacted]@h'],
  ['https://h/a@b https://h?a@b https://h#a@b', 'https://h/a@b https://h?a@b https://h#a@b'],
  ['https://h and a@b', 'https://h and a@b'],
  ['https://us"er:p@h', 'https://[redacted]@h'],
  ['?key=abc&x=1&access_token=abc', '?key=[redacted]&x=1&access_token=[redacted]'],
  ['?a.b-c_secret=abc#client-Password=abc', '?a.b-c_secret=[redacted]#client-Password=[redacted]'],
  ['to https://h/?token=a:b: 302', 'to https://h/?token=[redacted]: 302'],
  ['?X-Amz-Signature=ab"c', '?X-Amz-Signature=[redacted]"c'],
  [`?key=ab'c&key=ab\\c&key=ab c`, `?key=[redacted]'c&key=[redacted]\\c&key=[redacted] c`],
  ['?keys=abc&key= key=abc', '?keys=abc&key= key=abc'],
])('parley redacts only passwords and keys of the addresses in: %s', (text, shown) => {
  expect(createSecrets().redact(text)).toBe(shown)
})

test('parley redacts secrets inside of a JSON value, and the JSON stays valid', () => {
  const secrets = createSecrets('nope-a-secret', 'sekret\\', '0041bcd', '12345')
  const value = { a: 'one\nope-a-secret', b: 'a sekret\\"', c: '\u0041bcd', d: 'https://us"er:p@h', e: 12345 }
  expect(JSON.stringify(secrets.redactValue(value))).toBe(
    '{"a":"one\\nope-a-secret","b":"a [redacted]\\"","c":"Abcd","d":"https://[redacted]@h","e":"[redacted]"}',
  )
})

test('parley cuts the items and fields of a JSON value after the given length', () => {
  const { redactValue } = createSecrets()
  expect(redactValue(['a', 'b', 'c'], 3)).toEqual(['a', '…'])
  expect(redactValue({ a: 'b', c: 'd', e: null }, 4)).toEqual({ a: 'b', '…': '…' })
})

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln'

test.each<[name: string, value: string, shown: string]>([
  ['Authorization', 'Bearer abc', 'Bearer [redacted]'],
  ['Authorization', 'bearer abc', 'bearer [redacted]'],
  ['Proxy-Authorization', 'Basic abc', 'Basic [redacted]'],
  ['X-Auth', 'abc', '[redacted]'],
  ['Cookie', 'a=b\nc=d', '[redacted]'],
  ['Set-Cookie', 'a Bearer b', '[redacted]'],
  ['X-Api-Key', 'a', '[redacted]'],
  ['X-Token', 'a', '[redacted]'],
  ['X-Secret', 'a', '[redacted]'],
  ['X-Passwd', 'a', '[redacted]'],
  ['X-Credentials', 'a', '[redacted]'],
  ['X-Signature', 'a', '[redacted]'],
  ['X-Forward', ' Bearer  abc ', '[redacted]'],
  ['X-Forward', 'BEARER abc', 'BEARER [redacted]'],
  ['X-Forward', basic('user:pass'), 'Basic [redacted]'],
  ['X-Forward', ` ${basic('user:pass').replace(' ', '  ')} `, '[redacted]'],
  ['X-Forward', `a ${basic('user:pass')}`, `a ${basic('user:pass')}`],
  ['X-Forward', `${basic('user:pass')} a`, `${basic('user:pass')} a`],
  ['X-Forward', basic('plan'), basic('plan')],
  ['X-Forward', 'basic', 'basic'],
  ['X-Forward', 'Bearer', 'Bearer'],
  ['X-Forward', 'Bearer a b', 'Bearer a b'],
  ['X-Forward', 'a Bearer b', 'a Bearer b'],
  ['X-Forward', `v1 ${jwt}`, '[redacted]'],
  ['X-Forward', 'eyJ0.e.', '[redacted]'],
  ['X-Forward', `x${jwt} .${jwt} -${jwt}`, `x${jwt} .${jwt} -${jwt}`],
  ['X-Forward', 'eyJ0.e eyJ.e.s eyJ0..s', 'eyJ0.e eyJ.e.s eyJ0..s'],
  ['WWW-Authenticate', 'Bearer realm="x"', 'Bearer realm="x"'],
  ['Proxy-Authenticate', 'Bearer abc', 'Bearer abc'],
  ['X-WWW-Authenticate', 'a', '[redacted]'],
  ['WWW-Authenticate-X', 'a', '[redacted]'],
  ['x-ratelimit-tokens-limit', '5', '5'],
  ['Rate-Limit-Tokens-Remaining', '5', '5'],
  ['x-ratelimit-tokens-reset', '5', '5'],
  ['x-ratelimit-tokens-reset', 'Bearer abc', 'Bearer [redacted]'],
  ['x-ratelimit-token', '5', '[redacted]'],
  ['x-ratelimit-reset-token', '5', '[redacted]'],
  ['x-tokens-limit', '5', '[redacted]'],
  ['Location', 'https://u:p@h/known-secret', 'https://[redacted]@h/[redacted]'],
])('parley shows the header %s: %s as %s', (name, value, shown) => {
  expect(createSecrets('known-secret').redactHeaders({ [name]: value })).toEqual({ [name]: shown })
  expect(isSecretHeader(name, value)).toBe(shown !== value && name !== 'Location')
})

test('parley finds credentials in headers with and without an authentication scheme, and in each cookie', () => {
  expect(
    findHeaderSecrets({
      Authorization: 'Bearer   abc def',
      'X-Api-Key': 'a-key',
      COOKIE: 'a=1;b=2=3;  c; d=',
      'Set-Cookie': 'a=1',
      Cookies: 'a=2',
      'X-Token': '"a b',
      Accept: 'x',
    }),
  ).toEqual([
    ...['Bearer   abc def', 'abc def', 'a-key', 'a-key', '1', '2=3', 'c', ''],
    ...['a=1', 'a=1', 'a=2', 'a=2', '"a b', '"a b'],
  ])
})

describe('parley redacts secrets in a failure', () => {
  const redactFailure = (failure: CliError) => createSecrets('known-secret', '123456').redactFailure(failure)

  test('parley redacts secrets in every text of a failure', () => {
    const failure = new CliError('refused', 'no known-secret', {
      status: 400,
      serviceMessage: 'a known-secret',
      requestId: 'b known-secret',
      problems: ['c known-secret', 'd'],
      answer: 'e known-secret',
      body: [{ 'known-secret': ['known-secret', 123456, 12], a: null, b: true, c: undefined }, 'x'],
    })
    const redacted = redactFailure(failure)
    expect(redacted).toMatchObject({ message: 'no [redacted]', kind: 'refused' })
    expect(redacted.details).toEqual({
      status: 400,
      serviceMessage: 'a [redacted]',
      requestId: 'b [redacted]',
      problems: ['c [redacted]', 'd'],
      answer: 'e [redacted]',
      body: [{ '[redacted]': ['[redacted]', '[redacted]', 12], a: null, b: true, c: undefined }, 'x'],
    })
    expect(redactFailure(new CliError('usage', 'x')).details).toEqual({})
  })

  test('parley shortens the texts and the body of a failure, but not an answer that is saved in no file', () => {
    const long = `known-secret${' x'.repeat(2 ** 20)}`
    const body = { a: long, b: long }
    const details = { serviceMessage: long, answer: long, body, resumeArguments: [long] }
    const { message, details: shown } = redactFailure(new CliError('refused', long, details))
    const start = (length: number) => `${long.replace('known-secret', '[redacted]').slice(0, length)}…`
    expect(message === start(2 ** 16)).toBe(true)
    expect(shown.serviceMessage === start(2 ** 16)).toBe(true)
    expect(JSON.stringify(shown.body).length).toBeLessThan(2 ** 20 + 100)
    expect(shown.answer === long.replace('known-secret', '[redacted]')).toBe(true)
    expect(shown.resumeArguments?.[0] === shown.answer).toBe(true)
    const kept = redactFailure(new CliError('refused', 'x', { answer: long, savedFiles: ['answer.txt'] }))
    expect(kept.details.answer === start(2 ** 16)).toBe(true)
  })

  const fields = Array.from({ length: 2 ** 15 }, (_, at) => [`field ${at}`.padEnd(64), null])
  test.each([
    ['items', Array(2 ** 20 + 2).fill('')],
    ['fields', Object.fromEntries(fields)],
  ])('parley shortens the body of a failure with many %s', (_, body) => {
    const { details } = redactFailure(new CliError('refused', 'x', { body }))
    expect(Object.keys(details.body as object).length).toBeLessThanOrEqual(2 ** 20 + 1)
    expect(JSON.stringify(details.body).length).toBeLessThan(2 ** 22)
  })

  test("parley shows 200 nested levels of a failure's body, with unquoted numbers, and … for deeper levels", () => {
    const nested = (levels: number, inner: unknown) => {
      let value = inner
      for (let level = levels; level > 0; level--) value = level % 2 === 0 ? [value] : { a: value }
      return value
    }
    const shownOf = (body: unknown) => redactFailure(new CliError('refused', 'x', { body })).details.body
    expect(shownOf(nested(200, 5))).toEqual(nested(200, 5))
    expect(shownOf(nested(200, []))).toEqual(nested(200, '…'))
    expect(shownOf(nested(201, 'x'))).toEqual(nested(200, '…'))
  })
})
