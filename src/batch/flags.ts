import { InvalidArgumentError, Option } from 'commander'
import { FileFlag, type FlagCompanions, parsePositiveCount } from '../argv/flags.ts'
import type { Share } from './input.ts'

export interface BatchOptions {
  batch?: string
  concurrency?: number
  results?: string
  resume?: boolean
  share?: Share
  maxFailed?: MaxFailed
  maxTotalTokens?: number
}

/** How many lines may fail in a run that ends well: so many, or so many of a hundred. */
interface MaxFailed {
  /** As the person wrote it. */
  text: string
  /** Of so many lines; Infinity if that depends on how many there are, which is not known yet. */
  getMaxFailed(lines: number | undefined): number
}

/** The flags of `--batch`, which `parley help batch` lists. */
export const batchFlags = (): Option[] => [
  new Option('--concurrency <n>', 'maximum concurrent requests (default 8)').argParser(parsePositiveCount),
  new FileFlag('--results <file>', 'append results to a file instead of printing them', 'keeps'),
  new Option('--resume', 'continue an earlier run with these --results'),
  new Option(
    '--share <i/n>',
    'only every Nth line, starting at the Ith, with the numbers of the whole file',
  ).argParser(parseShare),
  new Option('--max-failed <n>', 'tolerate up to N or N% failed lines (exit 0), stop at more').argParser(
    parseMaxFailed,
  ),
  new Option('--max-total-tokens <n>', 'stop starting requests after this many tokens').argParser(
    parsePositiveCount,
  ),
]

/** `--batch`, and those, which the help of a command leaves out. */
export const allBatchFlags = (): Option[] => [
  new FileFlag('--batch <file>', "one request per line of a file, or - for stdin: 'parley help batch'"),
  ...batchFlags().map((flag) => flag.hideHelp()),
]

/** Of these, and of those that are for one answer. */
export const batchCompanions: FlagCompanions = {
  ...Object.fromEntries(batchFlags().map(({ long }) => [long, { needs: ['--batch'] }])),
  '--resume': { needs: ['--results'] },
  '--usage': { bars: ['--batch'] },
}

function parseShare(value: string): Share {
  const [, place = 0, of = 0] = (/^0*([1-9]\d*)\/0*([1-9]\d*)$/.exec(value) ?? []).map(Number)
  if (place < 1 || place > of) throw new InvalidArgumentError('not a share such as 1/3, 2/3 or 3/3')
  return { place, of }
}

function parseMaxFailed(value: string): MaxFailed {
  const [, number, sign] = /^(\d+)(%?)$/.exec(value) ?? []
  const isPercentage = sign === '%'
  if (number === undefined || (isPercentage && Number(number) > 100))
    throw new InvalidArgumentError('not a whole number, or a percentage such as 5%')
  const most = Number(number)
  return {
    text: value,
    getMaxFailed: (lines = Infinity) => (isPercentage && most > 0 ? Math.floor((lines * most) / 100) : most),
  }
}
