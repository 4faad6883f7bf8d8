// Replaces the clock of a tested process by real time that slows down on a busy machine. So a timeout passes
// only after the event loop had at least fifty turns per second. Waits under half a second are unchanged.
const { performance } = require('node:perf_hooks')

const [start, wait] = [Date.now(), setTimeout]
const read = performance.now.bind(performance)
const begun = read()
let passed = 0
let last = read()

setInterval(() => {
  const real = read()
  passed += Math.min(real - last, 20)
  last = real
}, 10).unref()

Date.now = () => start + Math.floor(passed)
performance.now = () => begun + passed

globalThis.setTimeout = Object.assign((act, milliseconds, ...words) => {
  if (!(milliseconds >= 500)) return wait(act, milliseconds, ...words)
  let since = passed
  const timer = setInterval(() => {
    if (passed - since < milliseconds) return
    clearInterval(timer)
    act(...words)
  }, 10)
  const refresh = timer.refresh
  timer.refresh = () => {
    since = passed
    return refresh.call(timer)
  }
  return timer
}, wait)
