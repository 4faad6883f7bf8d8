import { type Command, Option } from 'commander'
import { FileFlag, InputFlag, parseCount } from '../argv/flags.ts'
import { usage } from '../errors.ts'

export interface BatchOptions {
  batch?: string
  concurrency?: number
  results?: string
  resume?: boolean
  unordered?: boolean
  maxTotalTokens?: number
}

/** Flags that many requests have, and one has not. */
const others = ['concurrency', 'results', 'resume', 'unordered', 'maxTotalTokens'] as const

/** The flags of `--batch`, which `parley help batch` lists. */
export const batchFlags = (): Option[] => [
  new Option('--concurrency <n>', 'the most requests at a time (default 8)').argParser(parseCount),
  new FileFlag('--results <file>', 'also write each result to a file, as it comes', 'keeps'),
  new Option('--resume', 'go on where an earlier run with these --results stopped'),
  new Option('--unordered', 'print each result as it comes, not in the order of the lines'),
  new Option('--max-total-tokens <n>', 'begin nothing new once the answers took so many').argParser(
    parseCount,
  ),
]

export function declareBatchFlags(command: Command): void {
  const about = "many requests, one a line, from a file or - for stdin: 'parley help batch'"
  command.addOption(new InputFlag('--batch <file>', about))
  for (const option of batchFlags()) command.addOption(option.hideHelp())
}

/** Throws a usage error for a flag of `--batch` without it. */
export function refuseBatchFlags(options: BatchOptions): void {
  const flag = others.find((name) => options[name] !== undefined)
  if (flag === undefined) return
  const spelled = flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  throw usage(`--${spelled} goes with --batch only`)
}

/** Throws a usage error for flags that do not go together. */
export function checkBatchFlags({ results, resume }: BatchOptions, curl: boolean | undefined): void {
  if (resume && results === undefined) throw usage('--resume needs --results FILE')
  if (curl) throw usage('--curl shows one request, --batch has many: use --dry-run')
}
