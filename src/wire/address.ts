/** Why a text cannot be a service's address, in words that never quote it (it may contain a password), or `undefined`. */
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
  if (reserved.has(Number(url.port)))
    return `must not use port ${url.port}, which belongs to another protocol`
  return undefined
}

/** The ports that the Fetch standard blocks: another server listens there, and may read a request as commands. */
const reserved = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

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
