import { answeringWell } from '../harness/well.ts'
import type { Row } from './rows.ts'

/** A part of a row that can be what goes wrong. */
export type Fault = 'signal' | 'beside' | 'service' | 'address' | 'files' | 'environment' | 'stdin' | 'words'

/** The parts of a row that may be its fault, the most likely one first. */
export function faultsOf(row: Row): Fault[] {
  const has: Record<Fault, boolean> = {
    signal: row.signal !== undefined,
    beside: row.during !== undefined,
    service: row.script !== undefined || row.listen !== undefined,
    address: row.url !== undefined || row.envOf !== undefined,
    files: row.prepare !== undefined,
    environment: row.env !== undefined,
    stdin: row.stdin !== undefined,
    words: row.argv !== undefined || row.shell !== undefined,
  }
  return (Object.keys(has) as Fault[]).filter((fault) => has[fault])
}

/** The row without one of its parts: the service answers well and says this, the file is not there, nobody interrupts. */
export function takeOut(row: Row, fault: Fault, text = 'ok'): Row {
  const { signal, during, script, listen, url, envOf, prepare, env, stdin, argv, shell, ...rest } = row
  const all = { ...row }
  const well = { script: answeringWell(text) }
  switch (fault) {
    // It was sent while somebody waited, mostly for a service that never answers.
    case 'signal':
      return without({ ...all, ...well }, 'signal', 'listen')
    case 'beside':
      return without({ ...all, ...well }, 'during')
    case 'service':
      return without({ ...all, ...well }, 'listen')
    case 'address':
      return without({ ...all, ...well }, 'url', 'envOf', 'listen')
    case 'files':
      return without(all, 'prepare')
    case 'environment':
      return without(all, 'env')
    case 'stdin':
      return without(all, 'stdin')
    case 'words':
      return {
        ...rest,
        ...well,
        argv: plainWords(argv ?? shell?.match(/parley (\S+)(?: (\S+))?/)?.slice(1) ?? []),
      }
  }
}

function without(row: Row, ...names: (keyof Row)[]): Row {
  const left = { ...row }
  for (const name of names) delete left[name]
  return left
}

/** The command of these words with nothing wrong about it. */
function plainWords([command = '', sub = '']: string[]): string[] {
  if (command === 'image') return ['image', 'a fox', '-m', 'painter']
  if (command === 'api') return ['api', 'gateway', '/v1/models']
  if (command !== 'events') return ['chat', 'hi']
  if (sub === 'confirm') return ['events', 'confirm', 'toolu_1', '--allow']
  return ['events', sub || 'send', ...(sub === 'list' || sub === 'follow' ? [] : ['hi'])]
}
