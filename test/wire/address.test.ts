import { expect, test } from 'vitest'
import { findAddressProblem, isLoopbackHost, isUnencryptedRemote } from '../../src/wire/address.ts'

test.each([
  'https://h.test',
  'HTTP://h.test:8080/a%20b/',
  'https://h.test:65535',
  'https://[::1]',
  'https://h.test//a@b',
  'https://bücher.test',
])('%j is the address of a service', (address) => expect(findAddressProblem(address)).toBe(undefined))

test.each([
  '',
  'h.test:443',
  'h.test/https://h.test',
  '\thttps://h.test',
  'wss://h.test',
  'https:h.test',
  'https:8080',
  'https:/h.test',
  'https:\\\\h.test',
  '“https://h.test”',
])('the address %j must begin with https:// or http://', (address) =>
  expect(findAddressProblem(address)).toBe('must begin with https:// or http://'),
)

test.each([
  ...['https://', 'https://:443', 'https://h:99999', 'https://h:0', 'http://[', 'https:///user@h.test'],
  ...['https://user@h.test', 'https://:secret@h.test', 'https://@h.test', 'https://:@h.test'],
  ...['https://h.test?', 'https://h.test/?a=b', 'https://h.test#', 'https://h.test/#a'],
  ...['https://h.test ', 'https://h\n.test', 'https://h.test/\u007f', 'https://h/\u00a0', 'https://h.test"'],
  ...['https://h.test\\@evil.test', 'https://h.test/a\\b'],
])('the address %j must have only a host, a port and a path', (address) =>
  expect(findAddressProblem(address)).toMatch(/^must have only a host, a port and a path: no user name, /),
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
