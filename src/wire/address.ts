/**
 * Matches addresses that `URL` and curl read alike. For example, `URL` treats a backslash as a slash and a quote as
 * part of the host, and drops an empty user name.
 */
const addressPattern =
  /^https?:\/\/(?:\[[\da-f:.]+\]|[^\s\x00-\x1f\x7f-\x9f"'`<>‘’“”\\?#/@:[\]]+)(?::0*[1-9]\d*)?(?:\/[^\s\x00-\x1f\x7f-\x9f"'`<>‘’“”\\?#]*)?$/i

/**
 * Returns why a text cannot be a service's address, or `undefined` if it can. The reason never quotes the
 * text, which may contain a password.
 */
export function findAddressProblem(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return 'must begin with https:// or http://'
  if (addressPattern.test(text) && isUrl(text)) return undefined
  return 'must have only a host, a port and a path: no user name, query, fragment, blank, quote or backslash'
}

/** On Node 20, `URL.canParse` rejects letters outside of ASCII after some thousand calls. */
function isUrl(text: string): boolean {
  try {
    return Boolean(new URL(text))
  } catch {
    return false
  }
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
