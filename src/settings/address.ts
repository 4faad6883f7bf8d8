/** Why a text cannot be a service's address, in words that never quote it (it may hold a password), or `undefined`. */
export function addressProblem(text: string): string | undefined {
  if (/[\s\p{Cc}]/u.test(text)) return 'must not contain blanks or control characters'
  if (!URL.canParse(text)) {
    return /^[a-z][a-z0-9+.-]*:\/\//i.test(text)
      ? 'is not a valid URL'
      : 'must begin with https:// or http://'
  }
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  if (url.username || url.password) return 'must not contain a user name or password'
  if (url.search || text.includes('?')) return 'must not contain a query'
  if (url.hash || text.includes('#')) return 'must not contain a fragment'
  if (url.port === '0') return 'must not use port 0'
  return undefined
}

/** Whether an address leaves this machine unencrypted. What counts is the parsed host. */
export function isPlainRemote(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && !isLoopback(hostname)
}

/** A `hostname` as `URL` gives it: lower case, an IPv6 address in brackets, any spelling of IPv4 made canonical. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname)
}
