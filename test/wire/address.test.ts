import { expect, test } from 'vitest'
import { findAddressProblem, isLoopbackHost, isUnencryptedRemote } from '../../src/wire/address.ts'

test.each([
  ...['HTTP://h.test:8080/a%20b/', 'https://h.test:65535', 'https://[::1]', 'https://h.test//a@b'],
  'https://bücher.test',
])('%j is the address of a service', (address) => expect(findAddressProblem(address)).toBe(undefined))

test.each([
  ...['h.test:443', 'h.test/https://h.test', '\thttps://h.test', 'wss://h.test', 'https:h.test'],
  ...['https:/h.test', 'https:\\\\h.test', '“https://h.test”'],
])('the address %j must begin with https:// or http://', (address) =>
  expect(findAddressProblem(address)).toBe('must begin with https:// or http://'),
)

test.each([
  ...['https://:443', 'https://h:99999', 'https://h:0', 'http://[', 'https:///user@h.test'],
  ...['https://user@h.test', 'https://:secret@h.test', 'https://@h.test'],
  ...['https://h.test?', 'https://h.test/?a=b', 'https://h.test#', 'https://h.test/#a'],
  ...['https://h\n.test', 'https://h.test/\u007f', 'https://h/\u00a0', 'https://h.test"'],
  ...['https://h.test\\@evil.test', 'https://h.test/a\\b'],
])('the address %j must have only a host, a port and a path', (address) =>
  expect(findAddressProblem(address)).toMatch(/^must have only a host, a port and a path: no user name, /),
)

test.each('localhost LOCALHOST ::1 [::1] 127.0.0.1 127.9.10.99 127.100.199.200 127.249.250.255'.split(' '))(
  'S03: isLoopbackHost("%s") returns true',
  (host) => expect(isLoopbackHost(host)).toBe(true),
)

test.each([
  ...'127.0.0.256 127.0.0.260 127.0.0.300 127.0.0.01 127.0.0 127.0.0.1.1 127.0.0.1.h.test'.split(' '),
  ...'1127.0.0.1 127a0.0.1 localhost. a.localhost ::2 h[::1] local[host local]host'.split(' '),
])('S03: isLoopbackHost("%s") returns false', (host) => expect(isLoopbackHost(host)).toBe(false))

test.each([
  ['http://h.test', true],
  ['https://h.test', false],
  ['http://[::1]/', false],
  // URL parses this host as 127.0.0.1.
  ['http://0x7f.1', false],
])('isUnencryptedRemote(%j) returns %j', (address, is) => expect(isUnencryptedRemote(address)).toBe(is))
