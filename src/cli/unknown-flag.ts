import type { Option } from 'commander'
import { didYouMean } from '../argv/spelling.ts'
import type { Entry } from './entry.ts'

interface FlagPlace {
  /** The words of the command, without `parley`. */
  path: readonly string[]
  options: readonly Option[]
  /** The commands of a group. */
  children: Record<string, Entry>
}

/** The message about a flag that does not exist, with the flag that was probably meant. */
export function describeUnknownFlag(word: string, place: FlagPlace): string {
  // The value after = may be a secret.
  const name = word.startsWith('--') ? word.replace(/=.*/s, '') : word
  const start = `unknown flag '${name}'`
  if (/\s/.test(name)) return `${start}; words that begin with a hyphen go after --`
  const pointer = pointTo(name, place)
  if (pointer !== undefined) return `${start}: ${pointer}`
  const flags = place.options.flatMap(({ long }) => long ?? [])
  const guess = name.startsWith('--') ? didYouMean(name, flags) : ''
  const { path, children } = place
  const command = ['parley', ...path, ...Object.keys(children).slice(0, 1)].join(' ')
  const way = isLeaf(children)
    ? `'${command} --help' lists the flags`
    : `a command's own flags go after its name, as in: ${command} ${name} …`
  return `${start}${guess || `; ${way}`}`
}

const isLeaf = (children: Record<string, Entry>) => Object.keys(children).length === 0

/** A flag of other tools, what it is here, and a flag of the commands that this is true of. */
type Pointer = readonly [flags: readonly string[], says: string, needs: string]

const noFlag = 'secrets have no flag, for arguments are seen by others:'

/** Of those for the same flag the last one is for chat. */
const pointers: readonly Pointer[] = [
  [['--json'], "--raw prints the service's JSON", '--raw'],
  [['--jq'], '--raw prints JSON for jq, as in: --raw | jq .', '--raw'],
  [['-p', '--prompt'], 'the words are the task, without a flag', '--tool'],
  [['-p', '--prompt'], 'the words are the message, without a flag', '--interrupt'],
  [['-p', '--prompt'], 'the words are the prompt, without a flag', '--temperature'],
  [['--max-tokens'], '--max-output-tokens N limits the answer', '--max-output-tokens'],
  [['--schema-retries'], 'to ask again, run once more with a message that names the misfits', '--tool'],
  [['--fail-on-cut'], 'no answer is exit 8 always, with --last, -o or --schema', '--tool'],
  [['--yes', '--allow', '--dangerously-skip-permissions'], '--policy FILE says what is allowed', '--tool'],
  [
    ['--yes', '--allow', '--dangerously-skip-permissions'],
    "'parley events confirm' allows it",
    '--interrupt',
  ],
  [['--yes', '--allow', '--dangerously-skip-permissions'], 'a chat asks for nothing', '--thread'],
  [['--max-turns'], '--deadline, --max-cost and --max-total-tokens bound a run', '--tool'],
  [['-n'], '--limit N ends the list after N events', '--limit'],
  [['-n'], 'a request has one answer; --batch FILE makes many requests', '--batch'],
  [['-c', '--continue'], 'without a task it takes up the session as it is', '--tool'],
  [['-c', '--continue'], 'a session goes on by itself: send it one more message', '--interrupt'],
  [['-c', '--continue'], '--thread FILE keeps a conversation, and goes on with it', '--thread'],
  [
    ['--access-token', '--token'],
    `${noFlag} 'parley config set accessToken', or PARLEY_ACCESS_TOKEN`,
    '--base-url',
  ],
  [['--key'], `${noFlag} 'parley config set apiKey', or PARLEY_API_KEY`, '--beta'],
  [['--key'], `${noFlag} 'parley config set accessToken', or PARLEY_ACCESS_TOKEN`, '--temperature'],
  [['--unordered'], 'is gone: results of a batch come as they finish', '--batch'],
  [['--live', '--no-live'], 'is gone: messages are printed when they are whole', '--beta'],
  [['--policy'], "'parley events run' without a task answers what waits by the rules of --policy", '--deny'],
  [['--audit'], "'parley events run' without a task answers what waits, and keeps an audit", '--deny'],
  [['--rate'], 'is gone: --fault rate:N answers N requests a second', '--latency'],
  [['--chunk-delay'], 'is gone: --latency MS waits before each answer', '--latency'],
  [['--log'], 'is gone: the log is on stderr, as in: 2> FILE', '--latency'],
  [['--seed', '--stream-style'], 'is gone', '--latency'],
  [['-s'], '--system TEXT says how to answer', '--system'],
  [['-a', '--attachment'], '-f FILE adds a file', '--file'],
  [['--api-key'], `${noFlag} 'parley config set apiKey', or PARLEY_API_KEY`, '--base-url'],
  [['-d'], '-i FILE or stdin gives the whole body, --set PATH=VALUE a field of it', '--set'],
  [['--image'], '-f FILE adds an image to begin with', '--preview'],
  [['--image'], "-f FILE adds an image, and 'parley image' makes one", '--file'],
  [['--download'], 'is gone: a link is printed, for curl to fetch', '--preview'],
  [['--size'], '--set PATH=VALUE sets any field of the body that the model knows', '--set'],
]

function pointTo(name: string, { path, options, children }: FlagPlace): string | undefined {
  const rows = pointers.filter(([flags]) => flags.includes(name))
  if (isLeaf(children)) return rows.find(([, , needs]) => options.some(({ long }) => long === needs))?.[1]
  // Before the name of a command this one may as well name a session.
  const [, says] = path.length === 0 && name !== '-s' ? (rows.at(-1) ?? []) : []
  return (
    says &&
    `${says}; flags go after the command's name, as in: parley ${Object.keys(children)[0]} "Say hello"`
  )
}
