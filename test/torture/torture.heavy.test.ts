import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createRandom } from '../harness/random.ts'
import { prepareFolder, type RunObservation, type TortureCase, tortureCases } from './cases.ts'
import type { InjectedFault } from './strace.ts'
import { listPossibleFaults, runWithFault, runWithoutFault, traceCalls } from './strace.ts'

/** Number of faults per case. `npm run proof:torture` tests all faults. */
const wanted = process.env.TORTURE === 'all' ? Number.POSITIVE_INFINITY : Number(process.env.TORTURE ?? 2)
const seed = process.env.TORTURE_SEED ?? String(Date.now() % 100_000)
const random = createRandom([seed])

/** Port of each case. Names of temporary files contain the port, so all runs of a case need the same port. */
const ports = new Map<string, number>()

const counts = { calls: 0, faults: 0, missed: 0 }

/**
 * Returns whether `parley help exit-codes` documents the exit code. Code 1 means a bug, so it does not count.
 */
const isDocumented = (code: number | null) => code === null || code === 0 || (code >= 2 && code <= 15)

function chooseFaults(faults: InjectedFault[]): InjectedFault[] {
  if (wanted === Number.POSITIVE_INFINITY) return faults
  const pick = () => faults[Math.floor(random() * faults.length)] as InjectedFault
  return Array.from({ length: Math.min(wanted, faults.length) }, pick)
}

/** Calls `act` with the folder and service of a case, and removes them afterwards. */
async function withFolderAndService<T>(
  each: TortureCase,
  act: (world: {
    folder: string
    run: (argv: string[]) => { folder: string; argv: string[]; env: Record<string, string> }
    see: (ended: RunObservation['ended']) => RunObservation
  }) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'torture-'))
  const service = await each.serve(ports.get(each.name) ?? 0)
  ports.set(each.name, service.port)
  const files = prepareFolder(folder, each.before)
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

async function checkAfterFault(each: TortureCase, fault: InjectedFault): Promise<void> {
  await withFolderAndService(each, async ({ run, see }) => {
    const ended = await runWithFault(run(each.argv), fault)
    const { call, what } = fault
    if (!ended.isInjected) {
      counts.missed++
      process.stdout.write(`MISSED ${what} ${call.name} ${call.number} ${call.file}\n`)
    }
    const where = `${what} at ${call.name} ${call.number} of ${call.file}: exit ${ended.code ?? ended.signal}\n${ended.out}${ended.err}`
    try {
      expect(isDocumented(ended.code), 'an undocumented exit code').toBe(true)
      const seen = see(ended)
      each.check(seen)
      const recorded = each.listRecordedAnswers?.(seen) ?? []
      const left = seen.files.names().filter((name) => /\/\.parley-/.test(name))
      if (what !== 'SIGKILL' && call.name !== 'unlink') expect(left, 'a temporary file is left').toEqual([])
      if (each.isDone?.(seen)) return
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

describe('a failed system call loses no content (needs strace)', () => {
  for (const each of tortureCases)
    test(`${each.name} loses no content if a system call fails or the run is killed, and the next run works`, async () => {
      const { ended, calls } = await withFolderAndService(each, ({ run }) => traceCalls(run(each.argv)))
      expect(ended.code, ended.err).toBe(0)
      counts.calls += calls.length
      const faults = chooseFaults(calls.flatMap(listPossibleFaults))
      const broken: string[] = []
      for (const fault of faults) {
        counts.faults++
        await checkAfterFault(each, fault).catch((error: Error) => broken.push(error.message))
      }
      expect(broken).toEqual([])
    }, 3_600_000)
})
