/** Why a text cannot be a service's address, in words that never quote it (it may contain a password), or `undefined`. */
export function addressProblem(text: string): string | undefined {
  if (/[\s\p{Cc}]/u.test(text)) return 'must not contain blanks or control characters'
  // URL reads it as a slash, curl as a part of the user name: they would ask different hosts.
  if (text.includes('\\')) return 'must not contain a backslash'
  // Without the slashes URL takes 'https:8080' for a number of a host, curl for a host and its port.
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'must begin with https:// or http://'
  if (!URL.canParse(text)) return 'is not a valid URL'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  // URL drops an empty one, which a command to paste would have.
  if (url.username || url.password || /^[^/]*\/\/[^/?#]*@/.test(text))
    return 'must not contain a user name or password'
  if (url.search || text.includes('?')) return 'must not contain a query'
  if (url.hash || text.includes('#')) return 'must not contain a fragment'
  if (url.port === '0') return 'must not use port 0'
  return undefined
}

/** Whether requests to an address leave this machine unencrypted, judged by the parsed host. */
export function isPlainRemote(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && !isLoopback(hostname)
}

/**
 * Whether a host is this machine, by its name alone: as `URL` has it, an IPv6 address in brackets, or as it is given
 * to listen on. `localhost.` is not: that name is looked up in DNS, and whoever answers there decides where it leads.
 */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || /^127(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/.test(name)
}
