// Node loads this file before a tested process of parley. It simulates name lookups, slows the clock down on
// a busy machine, and records the peak memory.
const dns = require('node:dns')
const { readFileSync, writeFileSync } = require('node:fs')
const { isIP } = require('node:net')

const lookups = {}
const { lookup } = dns

function lookUp(name, options, callback) {
  // A server of the tests also looks up its host, with other arguments. It gets the real lookup.
  if (isIP(name) || typeof options === 'function') return lookup(name, options, callback)
  lookups[name] = (lookups[name] ?? 0) + 1
  const fail = (code) =>
    process.nextTick(
      callback,
      Object.assign(new Error(`getaddrinfo ${code} ${name}`), { code, hostname: name }),
    )
  if (name === 'down.test') return fail('ENOTFOUND')
  if (name === 'again.test' && lookups[name] === 1) return fail('EAI_AGAIN')
  if (name === 'silent.test') return
  const addresses = [{ address: '127.0.0.1', family: 4 }]
  if (name === 'two.test') addresses.unshift({ address: '::1', family: 6 })
  if (name === 'near.test') addresses.push({ address: '127.0.0.2', family: 4 })
  if (name === 'far.test') addresses.unshift({ address: '127.0.0.2', family: 4 })
  if (options.all) process.nextTick(callback, null, addresses)
  else process.nextTick(callback, null, addresses[0].address, addresses[0].family)
}

exports.mapNames = () => {
  dns.lookup = lookUp
}
exports.unmapNames = () => {
  dns.lookup = lookup
}
exports.mapNames()

const { TEST_PEAK } = process.env
if (TEST_PEAK) {
  require('../harness/steady.cjs')
  process.on('exit', () => {
    writeFileSync(TEST_PEAK, String(readPeak()))
  })
}

/** Returns the peak memory in KiB from Linux, because Node's own figure includes the parent process. */
function readPeak() {
  try {
    return /^VmHWM:\s+(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]
  } catch {
    return process.resourceUsage().maxRSS
  }
}
