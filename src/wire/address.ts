/**
 * Returns why a text cannot be a service's address, or `undefined` if it can. The reason never quotes the
 * text, which may contain a password.
 */
export function findAddressProblem(text: string): string | undefined {
  if (/[\s\x00-\x1f\x7f-\x9f]/.test(text)) return 'must not contain blanks or control characters'
  // `URL` accepts a quote as part of a host name, so a quoted address would pass.
  if (/["'`<>‘’“”]/.test(text)) return 'must not contain quotes or angle brackets'
  // `URL` treats a backslash as a slash, and curl treats a backslash as part of the user name. So parley and
  // the curl command of `--curl` would connect to different hosts.
  if (text.includes('\\')) return 'must not contain a backslash'
  // Without slashes, `URL` reads 'https:8080' as an IPv4 address, but curl reads the same text as host and
  // port. So parley and curl would connect to different hosts.
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return 'must begin with https:// or http://'
  if (!URL.canParse(text)) return 'is not a valid URL'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  // `URL` drops an empty user name (`https://@host`), but the curl command of `--curl` would contain it.
  if (url.username || url.password || /^[^/]*\/\/[^/?#]*@/.test(text))
    return 'must not contain a user name or password'
  if (url.search || text.includes('?')) return 'must not contain a query'
  if (url.hash || text.includes('#')) return 'must not contain a fragment'
  if (url.port === '0') return 'must not use port 0'
  return undefined
}

export function isUnencryptedRemote(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'http:' && !isLoopbackHost(hostname)
}

/**
 * Returns whether a host is this machine. An IPv6 address may be in brackets. Returns false for `localhost.`,
 * because a DNS server resolves it, possibly to another machine.
 */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '')
  return name === 'localhost' || name === '::1' || /^127(\.(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)){3}$/.test(name)
}
