import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createRandom } from '../harness/random.ts'
import { type Case, cases, prepare, type Seen } from './cases.ts'
import { type Blow, blowsAt, runPlainly, strike, tellCalls } from './strace.ts'

/** How many calls of each case are struck; all of them by npm run proof:torture. */
const wanted = process.env.TORTURE === 'all' ? Number.POSITIVE_INFINITY : Number(process.env.TORTURE ?? 2)
const seed = process.env.TORTURE_SEED ?? String(Date.now() % 100_000)
const random = createRandom([seed])

/** The port of each case, so that all its runs give their files the same names. */
const ports = new Map<string, number>()

const counts = { calls: 0, blows: 0, missed: 0 }

/** A bug's exit code is in no table of promises. */
const isPromised = (code: number | null) => code === null || code === 0 || (code >= 2 && code <= 15)

function chooseBlows(blows: Blow[]): Blow[] {
  if (wanted === Number.POSITIVE_INFINITY) return blows
  return Array.from(
    { length: Math.min(wanted, blows.length) },
    () => blows[Math.floor(random() * blows.length)] as Blow,
  )
}

/** Makes a world for a run of a case, and takes it away again. */
async function within<T>(
  each: Case,
  act: (world: {
    folder: string
    run: (argv: string[]) => { folder: string; argv: string[]; env: Record<string, string> }
    see: (ended: Seen['ended']) => Seen
  }) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'torture-'))
  const service = await each.serve(ports.get(each.name) ?? 0)
  ports.set(each.name, service.port)
  const files = prepare(folder, each.before)
  try {
    return await act({
      folder,
      run: (argv) => ({ folder, argv, env: service.env }),
      see: (ended) => ({ ended, files, service }),
    })
  } finally {
    await service.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function suffer(each: Case, blow: Blow): Promise<void> {
  await within(each, async ({ run, see }) => {
    const ended = await strike(run(each.argv), blow)
    if (!ended.isStruck) {
      counts.missed++
      process.stdout.write(`MISSED ${blow.what} ${blow.call.name} ${blow.call.number} ${blow.call.file}\n`)
    }
    const { call, what } = blow
    const where = `${what} at ${call.name} ${call.number} of ${call.file}: exit ${ended.code ?? ended.signal}\n${ended.out}${ended.err}`
    try {
      expect(isPromised(ended.code), 'an exit code that is in no table').toBe(true)
      const seen = see(ended)
      each.check(seen)
      const recorded = each.recordedIn?.(seen) ?? []
      const left = seen.files.names().filter((name) => /\/\.parley-/.test(name))
      if (what !== 'SIGKILL' && call.name !== 'unlink') expect(left, 'a temporary file is left').toEqual([])
      if (each.isOver?.(seen)) return
      const next = await runPlainly(run(each.again ?? each.argv))
      expect(each.nextCodes ?? [0], `the next run: ${next.err}`).toContain(next.code)
      each.checkNext(see(next), recorded)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${where}`)
    }
  })
}

afterAll(() => {
  const { blows, calls, missed } = counts
  const what = `${blows} blows at ${calls} calls, ${missed} of them missed; TORTURE_SEED=${seed}`
  process.stdout.write(`torture: ${what}\n`)
})

describe('every write may fail, and at each the run may be killed (needs strace)', () => {
  for (const each of cases)
    test(each.name, async () => {
      const { ended, calls } = await within(each, ({ run }) => tellCalls(run(each.argv)))
      expect(ended.code, ended.err).toBe(0)
      counts.calls += calls.length
      const blows = chooseBlows(calls.flatMap(blowsAt))
      const broken: string[] = []
      for (const blow of blows) {
        counts.blows++
        await suffer(each, blow).catch((error: Error) => broken.push(error.message))
      }
      expect(broken).toEqual([])
    }, 3_600_000)
})
