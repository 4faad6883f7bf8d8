import { expect, test } from 'vitest'
import { findAddressProblem, isLoopbackHost, isUnencryptedRemote } from '../../src/wire/address.ts'

test.each<[address: string, problem: string | undefined]>([
  ['https://h.test', undefined],
  ['HTTP://h.test:8080/a%20b/', undefined],
  ['https://h.test:65535', undefined],
  ['https://[::1]', undefined],
  ...[
    '',
    'h.test',
    'h.test/https://h.test',
    'h.test:443',
    '/x',
    'ftp://h.test',
    'x https',
    'wss://h.test',
    'data:x',
    '+://x',
  ].map((text): [string, string] => [
    text,
    text.includes(' ')
      ? 'must not contain blanks or control characters'
      : 'must begin with https:// or http://',
  ]),
  ...['https://', 'https://:443', 'https://h:99999', 'http://[', 'X+1.y-://[', 'https://a b'].map(
    (text): [string, string] => [
      text,
      text.includes(' ') ? 'must not contain blanks or control characters' : 'is not a valid URL',
    ],
  ),
  ...[
    'https://h.test ',
    '\thttps://h.test',
    'https://h\n.test',
    'https://h.test/\u007f',
    'https://h/\u00a0',
  ].map((text): [string, string] => [text, 'must not contain blanks or control characters']),
  ['https://user@h.test', 'must not contain a user name or password'],
  ['https://:secret@h.test', 'must not contain a user name or password'],
  ['https://@h.test', 'must not contain a user name or password'],
  ['https://:@h.test', 'must not contain a user name or password'],
  ['https://h.test//a@b', undefined],
  ['https:///user@h.test', 'must not contain a user name or password'],
  ['https:h.test', 'must begin with https:// or http://'],
  ['https:8080', 'must begin with https:// or http://'],
  ['https:/h.test', 'must begin with https:// or http://'],
  ['https://h.test/?a=b', 'must not contain a query'],
  ['https://h.test?', 'must not contain a query'],
  ['https://h.test/#a', 'must not contain a fragment'],
  ['https://h.test#', 'must not contain a fragment'],
  ['https://h.test:0', 'must not use port 0'],
  ['https://h.test\\@evil.test', 'must not contain a backslash'],
  ['https:\\\\h.test', 'must not contain a backslash'],
  ['https://h.test/a\\b', 'must not contain a backslash'],
  ['https://h.test"', 'must not contain quotes or angle brackets'],
  ['“https://h.test”', 'must not contain quotes or angle brackets'],
])('findAddressProblem(%j) returns %j', (address, problem) =>
  expect(findAddressProblem(address)).toBe(problem),
)

test.each([
  ['localhost', true],
  ['LOCALHOST', true],
  ['::1', true],
  ['[::1]', true],
  ['127.0.0.1', true],
  ['127.9.10.99', true],
  ['127.100.199.200', true],
  ['127.249.250.255', true],
  ['127.0.0.256', false],
  ['127.0.0.260', false],
  ['127.0.0.300', false],
  ['127.0.0.01', false],
  ['127.0.0', false],
  ['127.0.0.1.1', false],
  ['127.0.0.1.h.test', false],
  ['1127.0.0.1', false],
  ['127a0.0.1', false],
  ['localhost.', false],
  ['a.localhost', false],
  ['::2', false],
  ['h[::1]', false],
  ['local[host', false],
  ['local]host', false],
  ['', false],
])('S03: isLoopbackHost(%j) returns %j', (host, is) => expect(isLoopbackHost(host)).toBe(is))

test.each([
  ['http://h.test', true],
  ['https://h.test', false],
  ['http://localhost:8080', false],
  ['http://[::1]/', false],
  // URL parses this host as 127.0.0.1.
  ['http://0x7f.1', false],
])('isUnencryptedRemote(%j) returns %j', (address, is) => expect(isUnencryptedRemote(address)).toBe(is))
