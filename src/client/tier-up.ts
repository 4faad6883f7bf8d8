import { cachedDataVersionTag, setFlagsFromString } from 'node:v8'

/** V8's default for `--wasm-tiering-budget`, up to and from V8 12. */
const defaults = [1_800_000, 13_000_000]

/**
 * Runs work that loads undici's WebAssembly parser, so that V8 does not compile the parser a second time, better:
 * the process could not exit before that is done, about 60 ms later. The flag's default is put back at once, for
 * V8 drops its cache of built-in code while a flag differs; the cache's tag tells which default it was.
 */
export function withoutTierUp(work: () => void): void {
  const tag = cachedDataVersionTag()
  setFlagsFromString('--wasm-tiering-budget=1000000000')
  work()
  for (const budget of defaults) {
    setFlagsFromString(`--wasm-tiering-budget=${budget}`)
    if (cachedDataVersionTag() === tag) return
  }
}
