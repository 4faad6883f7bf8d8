import { answerWithoutFault } from '../harness/faultless.ts'
import type { Row } from './rows.ts'

/** A part of a row that may be its fault. */
export type Fault = 'signal' | 'during' | 'service' | 'address' | 'files' | 'environment' | 'stdin' | 'words'

/** Returns the parts of a row that may be its fault, the most likely one first. */
export function listFaults(row: Row): Fault[] {
  const has: Record<Fault, boolean> = {
    signal: row.signal !== undefined,
    during: row.during !== undefined,
    service: row.script !== undefined || row.listen !== undefined,
    address: row.url !== undefined || row.envOf !== undefined,
    files: row.prepare !== undefined,
    environment: row.env !== undefined,
    stdin: row.stdin !== undefined,
    words: row.argv !== undefined || row.shell !== undefined,
  }
  return (Object.keys(has) as Fault[]).filter((fault) => has[fault])
}

/**
 * Returns the row without one of its faults: the service answers well with `text`, the file is missing, or no
 * signal is sent.
 */
export function removeFault(row: Row, fault: Fault, text = 'ok'): Row {
  const well = { script: answerWithoutFault(text) }
  switch (fault) {
    // The signal interrupted a wait, mostly for a service that never answers. Without it the service must
    // answer.
    case 'signal':
      return without({ ...row, ...well }, 'signal', 'listen')
    case 'during':
      return without({ ...row, ...well }, 'during')
    case 'service':
      return without({ ...row, ...well }, 'listen')
    case 'address':
      return without({ ...row, ...well }, 'url', 'envOf', 'listen')
    case 'files':
      return without(row, 'prepare')
    case 'environment':
      return without(row, 'env')
    case 'stdin':
      return without(row, 'stdin')
    case 'words': {
      const { argv, shell = '' } = row
      const words = argv ?? /parley (\S+)(?: (\S+))?/.exec(shell)?.slice(1) ?? []
      const plain = { ...row, ...well, argv: plainWords(words) }
      return without(plain, 'signal', 'during', 'listen', 'url', 'envOf', 'prepare', 'env', 'stdin', 'shell')
    }
  }
}

function without(row: Row, ...names: (keyof Row)[]): Row {
  const left = { ...row }
  for (const name of names) delete left[name]
  return left
}

/** Returns correct arguments for the command that the row runs. */
function plainWords([command = '', sub = '']: string[]): string[] {
  if (command === 'image') return ['image', 'a fox', '-m', 'painter']
  if (command === 'api') return ['api', 'gateway', '/v1/models']
  if (command !== 'events') return ['chat', 'hi']
  if (sub === 'confirm') return ['events', 'confirm', 'toolu_1', '--allow']
  return ['events', sub || 'send', ...(sub === 'list' || sub === 'follow' ? [] : ['hi'])]
}
