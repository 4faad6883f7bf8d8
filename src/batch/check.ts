import { type CliError, mostCounted, usageProblems } from '../errors.ts'
import type { BadLine, Call, Job } from './jobs.ts'

/** How much there is to do. */
export interface Extent {
  lines: number
  /** Those that an earlier run has not done. */
  left: number
}

/** Reads a whole input before anything of it is sent. Throws a usage error that names every bad line. */
export async function checkJobs(jobs: AsyncIterable<Job<Call> | BadLine>, name: string): Promise<Extent> {
  const bad: BadLine[] = []
  const extent = { lines: 0, left: 0 }
  for await (const job of jobs) {
    extent.lines++
    if ('problem' in job) bad.push(job)
    else if (!job.isDone) extent.left++
    if (bad.length > mostCounted) break
  }
  if (bad.length > 0) throw refuseLines(bad, name)
  return extent
}

function refuseLines(bad: BadLine[], name: string): CliError {
  const hint = bad.find((line) => line.hint)?.hint
  return usageProblems(
    name,
    bad.map(({ index, problem }) => `line ${index}: ${problem}`),
  ).with(hint ? { consequence: hint } : {})
}

/** The lines that an earlier run has not done. Throws a usage error at a bad one. */
export async function* leftOf<C extends Call>(
  jobs: AsyncIterable<Job<C> | BadLine>,
  name: string,
  onSkip: () => void,
): AsyncGenerator<Job<C>, void, undefined> {
  for await (const job of jobs) {
    if ('problem' in job) throw refuseLines([job], name)
    if (job.isDone) onSkip()
    else yield job
  }
}
