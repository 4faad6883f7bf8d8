import { type Profiler, Session } from 'node:inspector'
import { expect } from 'vitest'

/**
 * Connection to V8, which counts how often each block of code runs. vitest loads this file before the program
 * (`setupFiles` in vitest.config.ts), because V8 does not count code that was compiled earlier.
 */
const session = new Session()
session.connect()

function post<T>(method: string, params?: object): T {
  let answer: object | undefined
  session.post(method, params, (error, result) => {
    if (error) throw error
    answer = result
  })
  return answer as T
}

post('Profiler.enable')
post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })

/** Returns how often the blocks of the program's code ran since the last call. */
function takeSteps(): number {
  const { result } = post<Profiler.TakePreciseCoverageReturnType>('Profiler.takePreciseCoverage')
  const sources = result.filter(({ url }) => url.includes('/src/'))
  const ranges = sources.flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
  return ranges.reduce((sum, { count }) => sum + count, 0)
}

/** Number of characters and bytes that built-in functions have searched since the last reset. */
let searched = 0

type Native = (this: unknown, ...values: unknown[]) => unknown

/** Returns a function that computes the length of the searched text from the result of the call. */
type SizeOf = (self: unknown, values: unknown[]) => (result: unknown) => number

/**
 * Replaces a built-in function by one that also counts the searched text. Returns a function that restores
 * it.
 */
function countSearches(owner: object, name: string, measure: SizeOf): () => void {
  const native = Reflect.get(owner, name) as Native
  Reflect.set(owner, name, function (this: unknown, ...values: unknown[]) {
    const toSize = measure(this, values)
    const result = native.apply(this, values)
    searched += toSize(result)
    return result
  } satisfies Native)
  return () => void Reflect.set(owner, name, native)
}

const getLength = (value: unknown) => (value as { length?: number } | undefined)?.length ?? 0
const byTarget: SizeOf = (self) => () => getLength(self)
const byArgument: SizeOf = (_, values) => () => getLength(values[0])
const byResult: SizeOf = () => getLength

const upToFound: SizeOf = (self, values) => (result) => {
  const at = result as number
  return Math.max(0, (at < 0 ? getLength(self) : at) - Number(values[1] ?? 0))
}

const upToMatch: SizeOf = (self, values) => {
  const pattern = self as RegExp
  const start = pattern.global || pattern.sticky ? pattern.lastIndex : 0
  return (result) => {
    const match = result as RegExpExecArray | null
    if (match) return match.index + match[0].length - start
    return pattern.sticky ? 1 : String(values[0]).length - start
  }
}

const natives: [owner: object, names: string[], SizeOf][] = [
  [String.prototype, ['includes', 'lastIndexOf', 'split', 'replaceAll', 'normalize', 'trim'], byTarget],
  [String.prototype, ['toWellFormed', 'isWellFormed'], byTarget],
  [Array.prototype, ['slice', 'concat', 'splice', 'unshift', 'indexOf', 'includes', 'join'], byTarget],
  [String.prototype, ['indexOf'], upToFound],
  [Buffer.prototype, ['indexOf'], upToFound],
  [RegExp.prototype, ['exec'], upToMatch],
  [JSON, ['parse'], byArgument],
  [JSON, ['stringify'], byResult],
  [Buffer, ['concat'], byResult],
  [Buffer.prototype, ['toString'], byResult],
  [TextDecoder.prototype, ['decode'], byResult],
]

async function countWork(work: () => unknown) {
  takeSteps()
  searched = 0
  const stops = natives.flatMap(([owner, names, size]) =>
    names.map((name) => countSearches(owner, name, size)),
  )
  try {
    await work()
  } finally {
    for (const stop of stops) stop()
  }
  return { searched, steps: takeSteps() }
}

/**
 * Length of the shorter text. A pattern of six characters occurs in it over 1,000 times, so both texts exceed
 * the maximum depth of nested JSON and take the same path through the code.
 */
const small = 2 ** 13
const times = 4

/**
 * Expects at most eight times the steps for a text of four times the length. Linear code needs four times the
 * steps, quadratic code sixteen times.
 */
export async function expectLinearWork(read: (size: number) => unknown): Promise<void> {
  // The first run has additional steps, such as compiling schemas, so it is not measured.
  await read(64)
  const before = await countWork(() => read(small))
  const after = await countWork(() => read(small * times))
  expect(before.steps, 'steps, if the program was loaded after its counters').toBeGreaterThan(0)
  const limit = (count: number) => count * times * 2 + small
  expect(after.steps, 'steps').toBeLessThan(limit(before.steps))
  expect(after.searched, 'searched characters').toBeLessThan(limit(before.searched))
}
