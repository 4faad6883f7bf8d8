import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createRandom } from '../harness/random.ts'
import { type Case, cases, type Observation, prepare } from './cases.ts'
import { type Fault, listFaults, runWithFault, runWithoutFault, traceCalls } from './strace.ts'

/** Number of calls per case that get a fault. npm run proof:torture tests all. */
const wanted = process.env.TORTURE === 'all' ? Number.POSITIVE_INFINITY : Number(process.env.TORTURE ?? 2)
const seed = process.env.TORTURE_SEED ?? String(Date.now() % 100_000)
const random = createRandom([seed])

/**
 * Port of each case. The names of temporary files contain the port, so all runs of a case use the same one.
 */
const ports = new Map<string, number>()

const counts = { calls: 0, faults: 0, missed: 0 }

/** Returns whether help exit-codes documents the exit code, other than the code of a bug. */
const isPromised = (code: number | null) => code === null || code === 0 || (code >= 2 && code <= 15)

function chooseFaults(faults: Fault[]): Fault[] {
  if (wanted === Number.POSITIVE_INFINITY) return faults
  return Array.from(
    { length: Math.min(wanted, faults.length) },
    () => faults[Math.floor(random() * faults.length)] as Fault,
  )
}

/** Creates the folder and service of a case, and removes them afterwards. */
async function within<T>(
  each: Case,
  act: (world: {
    folder: string
    run: (argv: string[]) => { folder: string; argv: string[]; env: Record<string, string> }
    see: (ended: Observation['ended']) => Observation
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

async function checkAfterFault(each: Case, fault: Fault): Promise<void> {
  await within(each, async ({ run, see }) => {
    const ended = await runWithFault(run(each.argv), fault)
    if (!ended.isInjected) {
      counts.missed++
      process.stdout.write(
        `MISSED ${fault.what} ${fault.call.name} ${fault.call.number} ${fault.call.file}\n`,
      )
    }
    const { call, what } = fault
    const where = `${what} at ${call.name} ${call.number} of ${call.file}: exit ${ended.code ?? ended.signal}\n${ended.out}${ended.err}`
    try {
      expect(isPromised(ended.code), 'an undocumented exit code').toBe(true)
      const seen = see(ended)
      each.check(seen)
      const recorded = each.recordedIn?.(seen) ?? []
      const left = seen.files.names().filter((name) => /\/\.parley-/.test(name))
      if (what !== 'SIGKILL' && call.name !== 'unlink') expect(left, 'a temporary file is left').toEqual([])
      if (each.isOver?.(seen)) return
      const next = await runWithoutFault(run(each.again ?? each.argv))
      expect(each.nextCodes ?? [0], `the next run: ${next.err}`).toContain(next.code)
      each.checkNext(see(next), recorded)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${where}`)
    }
  })
}

afterAll(() => {
  const { faults, calls, missed } = counts
  const what = `${faults} faults at ${calls} calls, ${missed} of them missed; TORTURE_SEED=${seed}`
  process.stdout.write(`torture: ${what}\n`)
})

describe('a write that fails or is killed loses no file content, and the next run works (needs strace)', () => {
  for (const each of cases)
    test(each.name, async () => {
      const { ended, calls } = await within(each, ({ run }) => traceCalls(run(each.argv)))
      expect(ended.code, ended.err).toBe(0)
      counts.calls += calls.length
      const faults = chooseFaults(calls.flatMap(listFaults))
      const broken: string[] = []
      for (const fault of faults) {
        counts.faults++
        await checkAfterFault(each, fault).catch((error: Error) => broken.push(error.message))
      }
      expect(broken).toEqual([])
    }, 3_600_000)
})
