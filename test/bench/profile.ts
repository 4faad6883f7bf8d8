import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { getTemporaryPath, measureMs, type TimedCommand } from './measure.ts'

interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[]
  samples: number[]
  /** Times between the samples, in microseconds. */
  timeDeltas: number[]
}

const rounds = 15

/** Part of a run for each file of the bundle, in the order in which a chat loads the files. */
const parts: Record<string, string> = {
  start: "Node's own start, and its end",
  loading: "finding, reading and compiling parley's files",
  'parley.cjs': 'the entry',
  'main.cjs': 'the entry',
  'program.cjs': 'commander: the command tree, the flags',
  'request.cjs': 'zod: settings, prompt, request; the connection',
  'undici-client.cjs': 'undici: the request, the parser in WebAssembly',
  'answer.cjs': 'zod: the answer; the output',
  garbage: 'collecting garbage',
  idle: 'waiting',
}

/** Returns the milliseconds of each part of a run as a Markdown table. Profiling slows the run slightly. */
export async function explainRun(
  node: string,
  argv: string,
  env: NonNullable<TimedCommand['env']>,
): Promise<string> {
  const folder = getTemporaryPath('profile')
  const sums = new Map(Object.values(parts).map((part) => [part, 0]))
  for (let round = 0; round < rounds; round++) {
    rmSync(folder, { recursive: true, force: true })
    const flags = `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=100`
    await measureMs({ command: `'${node}' ${flags} ${argv}`, env })
    const file = join(folder, readdirSync(folder)[0] as string)
    addUp(JSON.parse(readFileSync(file, 'utf8')) as Profile, sums)
  }
  const rows = [...sums].map(([part, sum]) => `| ${part} | ${(sum / rounds / 1000).toFixed(1)} ms |`)
  return ['| where a chat spends its time, profiled | |', '|---|---|', ...rows].join('\n')
}

/**
 * Adds each sample to the part of the innermost file of parley on its stack, even while that file calls a
 * function of Node.
 */
function addUp({ nodes, samples, timeDeltas }: Profile, sums: Map<string, number>): void {
  const frames = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const findFile = (id: number) => frames.get(id)?.callFrame.url.split('/').at(-1) ?? ''
  const findPart = (sample: number): string => {
    for (let id: number | undefined = sample; id !== undefined; id = parents.get(id)) {
      const { functionName = '' } = frames.get(id)?.callFrame ?? {}
      if (functionName === '(garbage collector)') return 'garbage'
      if (functionName === '(idle)') return 'idle'
      const file = findFile(id)
      if (Object.hasOwn(parts, file)) return file
      if (/^(wrapSafe|Module\.|loadSource|require$)/.test(functionName) && hasParley(parents.get(id)))
        return 'loading'
    }
    return 'start'
  }
  const hasParley = (id: number | undefined): boolean =>
    id !== undefined && (Object.hasOwn(parts, findFile(id)) || hasParley(parents.get(id)))

  for (const [index, sample] of samples.entries()) {
    const part = parts[findPart(sample)] as string
    sums.set(part, (sums.get(part) ?? 0) + (timeDeltas[index] as number))
  }
}
