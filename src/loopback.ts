import { isIP } from 'node:net'

/**
 * Whether a host is this machine, by its name alone: as `URL` has it, an IPv6 address in brackets, or as it is given
 * to listen on. `localhost.` is not: that name is looked up in DNS, and whoever answers there decides where it leads.
 */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}
