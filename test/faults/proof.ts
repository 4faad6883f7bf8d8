import { answerWithoutFault } from '../harness/faultless.ts'
import type { FaultRow } from './rows.ts'

/** Part of a row that may contain its fault. */
export type FaultSource =
  | 'signal'
  | 'during'
  | 'service'
  | 'address'
  | 'files'
  | 'environment'
  | 'stdin'
  | 'words'

/** Returns the parts of a row that may contain its fault, the most likely part first. */
export function listFaultSources(row: FaultRow): FaultSource[] {
  const has: Record<FaultSource, boolean> = {
    signal: row.signal !== undefined,
    during: row.during !== undefined,
    service: row.script !== undefined || row.listen !== undefined,
    address: row.url !== undefined || row.envOf !== undefined,
    files: row.prepare !== undefined,
    environment: row.env !== undefined,
    stdin: row.stdin !== undefined,
    words: row.argv !== undefined || row.shell !== undefined,
  }
  return (Object.keys(has) as FaultSource[]).filter((fault) => has[fault])
}

/**
 * Returns the row without the fault in one of its parts. For example, the service answers correctly with
 * `text`, no file is prepared, or no signal is sent.
 */
export function removeFault(row: FaultRow, fault: FaultSource, text = 'ok'): FaultRow {
  const correct = { script: answerWithoutFault(text) }
  switch (fault) {
    // In most rows with a signal, the service never answers. Without the signal, such a run would not end, so
    // the service answers.
    case 'signal':
      return without({ ...row, ...correct }, 'signal', 'listen')
    case 'during':
      return without({ ...row, ...correct }, 'during')
    case 'service':
      return without({ ...row, ...correct }, 'listen')
    case 'address':
      return without({ ...row, ...correct }, 'url', 'envOf', 'listen')
    case 'files':
      return without(row, 'prepare')
    case 'environment':
      return without(row, 'env')
    case 'stdin':
      return without(row, 'stdin')
    case 'words': {
      const { argv, shell = '' } = row
      const words = argv ?? /parley (\S+)(?: (\S+))?/.exec(shell)?.slice(1) ?? []
      const plain = { ...row, ...correct, argv: getCorrectArgv(words) }
      return without(plain, 'signal', 'during', 'listen', 'url', 'envOf', 'prepare', 'env', 'stdin', 'shell')
    }
  }
}

function without(row: FaultRow, ...names: (keyof FaultRow)[]): FaultRow {
  const left = { ...row }
  for (const name of names) delete left[name]
  return left
}

/** Returns correct arguments for the same command. */
function getCorrectArgv([command = '', sub = '']: string[]): string[] {
  if (command === 'image') return ['image', 'a fox', '-m', 'painter']
  if (command === 'api') return ['api', 'gateway', '/v1/models']
  if (command !== 'events') return ['chat', 'hi']
  if (sub === 'confirm') return ['events', 'confirm', 'toolu_1', '--allow']
  return ['events', sub || 'send', ...(sub === 'list' || sub === 'follow' ? [] : ['hi'])]
}
