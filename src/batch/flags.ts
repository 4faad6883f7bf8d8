import { InvalidArgumentError, Option } from 'commander'
import { FileFlag, type FlagRules, parsePositiveCount } from '../argv/flags.ts'

export interface BatchOptions {
  batch?: string
  concurrency?: number
  results?: string
  resume?: boolean
  /** Selects every `of`th line, beginning with line number `start`. */
  share?: { start: number; of: number }
  maxFailed?: MaxFailed
  maxTotalTokens?: number
}

interface MaxFailed {
  text: string
  /**
   * Returns the maximum number of failed lines. For a percentage, returns Infinity while `lines` is unknown.
   */
  getMaxFailed(lines: number | undefined): number
}

export const createFlagsThatNeedBatch = (): Option[] => [
  new Option('--concurrency <n>', 'maximum concurrent requests (default 8)').argParser(parsePositiveCount),
  new FileFlag('--results <file>', 'write results to a new file; with --resume, append', 'updates'),
  new Option('--resume', 'continue an earlier run with these --results'),
  new Option(
    '--share <i/n>',
    'process only every Nth line, starting at line I; line numbers stay those of the whole file',
  ).argParser(parseShare),
  new Option('--max-failed <n>', 'tolerate up to N or N% failed lines (exit 0), stop at more').argParser(
    parseMaxFailed,
  ),
  new Option('--max-total-tokens <n>', 'start no further request after N tokens').argParser(
    parsePositiveCount,
  ),
]

/** Hides all flags except `--batch` in the help of a command, because `parley help batch` lists them. */
export const createBatchFlags = (): Option[] => [
  new FileFlag(
    '--batch <file>',
    "send one request per line of a file (- for stdin); see 'parley help batch'",
  ),
  ...createFlagsThatNeedBatch().map((flag) => flag.hideHelp()),
]

export const batchFlagRules: FlagRules = {
  ...Object.fromEntries(createFlagsThatNeedBatch().map(({ long }) => [long, { requires: ['--batch'] }])),
  '--resume': { requires: ['--results'] },
  '--curl': { excludes: ['--batch'], advice: 'use --dry-run' },
  '--input': { excludes: ['--batch'] },
  '--usage': { excludes: ['--batch'] },
}

function parseShare(value: string): BatchOptions['share'] {
  const [, start = 0, of = 0] = (/^0*([1-9]\d*)\/0*([1-9]\d*)$/.exec(value) ?? []).map(Number)
  if (start < 1 || start > of) throw new InvalidArgumentError('not a share such as 1/3, 2/3 or 3/3')
  return { start, of }
}

function parseMaxFailed(value: string): MaxFailed {
  const [, number, sign] = /^(\d+)(%?)$/.exec(value) ?? []
  const isPercentage = sign === '%'
  if (number === undefined || (isPercentage && Number(number) > 100))
    throw new InvalidArgumentError('neither a whole number nor a percentage of at most 100%, such as 5%')
  const max = Number(number)
  return {
    text: value,
    getMaxFailed: (lines = Infinity) => (isPercentage && max > 0 ? Math.floor((lines * max) / 100) : max),
  }
}
