import { cachedDataVersionTag, setFlagsFromString } from 'node:v8'

/** V8's defaults for `--wasm-tiering-budget`: before V8 12, and since. */
const defaults = [1_800_000, 13_000_000]

/**
 * Runs work that loads undici's WebAssembly parser, and keeps V8 from optimising the parser: the process could not
 * exit until that is done, about 60 ms later. The flag gets its default back at once, because V8 drops its cache of
 * built-in code while a flag differs; the cache's tag shows which default it was.
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
