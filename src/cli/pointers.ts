import { didYouMean } from '../argv/spelling.ts'
import { shellQuote } from '../io/shell-quote.ts'
import { documentedModels } from '../wire/gateway/models.ts'
import { entries } from './command-tree.ts'
import type { Unknown } from './parley-command.ts'
import { isTopic, topics } from './topics.ts'

const init = "'parley config init' asks for addresses and credentials"

const models = `-m NAME or 'parley config set chatModel NAME' chooses one, imageModel the one for images; documented for chat: ${documentedModels.join(', ')}`

const sessions =
  "'parley api agents /v1/sessions' lists the sessions, and with -i FILE makes one, if the service has that"

/** What people try, what it is here, and of a flag one that the commands have that this is true of. */
type Pointer = readonly [names: string, says: string, needs?: string]

/** Words that people try, and where to find what they mean. Commands of groups need no row here. */
const wordPointers: readonly Pointer[] = [
  ['login, auth, configure, setup, init', init],
  ['logout', "'parley config unset accessToken' and 'parley config unset apiKey' remove the credentials"],
  ['models, model', models],
  ['ask', "'parley chat PROMPT' asks a model"],
  ['session, sessions, events create, events new, events sessions', sessions],
  ['events wait', "'parley events follow' ends once the session is at rest"],
  ['version', "'parley --version'"],
  ['flags', "'parley help settings'"],
  ['config edit', "'parley config set KEY VALUE' changes a value, 'parley config path' names the file"],
  ['config show', "'parley config list'"],
]

const noFlag = 'secrets have no flag, for arguments are seen by others:'
const token = `${noFlag} 'parley config set accessToken', or PARLEY_ACCESS_TOKEN`
const key = `${noFlag} 'parley config set apiKey', or PARLEY_API_KEY`

const allowing = '--yes, --allow, --dangerously-skip-permissions'

/** Flags of other tools. Of those for the same flag the last one is for chat. */
const flagPointers: readonly Pointer[] = [
  ['--json', "--raw prints the service's JSON", '--raw'],
  ['--jq', '--raw prints JSON for jq, as in: --raw | jq .', '--raw'],
  ['-p, --prompt', 'the words are the task, without a flag', '--tool'],
  ['-p, --prompt', 'the words are the message, without a flag', '--interrupt'],
  ['-p, --prompt', 'the words are the prompt, without a flag', '--temperature'],
  ['--max-tokens', '--max-output-tokens N limits the answer', '--max-output-tokens'],
  ['--schema-retries', 'to ask again, run once more with a message that names the misfits', '--tool'],
  ['--fail-on-cut', 'no answer is exit 8 always, with --last, -o or --schema', '--tool'],
  [allowing, '--policy FILE says what is allowed', '--tool'],
  [allowing, "'parley events confirm' allows it", '--interrupt'],
  [allowing, 'a chat asks for nothing', '--thread'],
  ['--max-turns', '--deadline, --max-cost and --max-total-tokens bound a run', '--tool'],
  ['-n', '--limit N ends the list after N events', '--limit'],
  ['-n', 'a request has one answer; --batch FILE makes many requests', '--batch'],
  ['-c, --continue', 'without a task it takes up the session as it is', '--tool'],
  ['-c, --continue', 'a session goes on by itself: send it one more message', '--interrupt'],
  ['-c, --continue', '--thread FILE keeps a conversation, and goes on with it', '--thread'],
  ['--access-token, --token', token, '--base-url'],
  ['--key', key, '--beta'],
  ['--key', token, '--temperature'],
  ['--unordered', 'is gone: results of a batch come as they finish', '--batch'],
  ['--live, --no-live', 'is gone: messages are printed when they are whole', '--beta'],
  ['--policy', "'parley events run' without a task answers what waits by the rules of --policy", '--deny'],
  ['--audit', "'parley events run' without a task answers what waits, and keeps an audit", '--deny'],
  ['--rate', 'is gone: --fault rate:N answers N requests a second', '--latency'],
  ['--chunk-delay', 'is gone: --latency MS waits before each answer', '--latency'],
  ['--log', 'is gone: the log is on stderr, as in: 2> FILE', '--latency'],
  ['--seed, --stream-style', 'is gone', '--latency'],
  ['-s', '--system TEXT says how to answer', '--system'],
  ['-a, --attachment', '-f FILE adds a file', '--file'],
  ['--api-key', key, '--base-url'],
  ['-d', '-i FILE or stdin gives the whole body, --set PATH=VALUE a field of it', '--set'],
  ['--image', '-f FILE adds an image to begin with', '--preview'],
  ['--image', "-f FILE adds an image, and 'parley image' makes one", '--file'],
  ['--download', 'is gone: a link is printed, for curl to fetch', '--preview'],
  ['--size', '--set PATH=VALUE sets any field of the body that the model knows', '--set'],
]

/**
 * The message about a flag, a command or, with `isHelp`, a topic that does not exist, with the one that was probably meant.
 * `profile` is the value of `--profile`.
 */
export function describeUnknown(unknown: Unknown, isHelp: boolean, profile?: string): string {
  const { command, words } = unknown
  const [word = '', ...rest] = words
  if (word.startsWith('-')) return describeFlag(unknown)
  const group = command.words
  const typed = [...group, word].join(' ')
  const start = `there is no command ${isHelp ? 'and no topic ' : ''}'${typed}'`
  const way = pointersFor(wordPointers, typed)[0]?.[1] ?? findElsewhere(typed, isHelp)
  if (way !== undefined) return `${start}: ${way}`
  const near = guess(word, [
    ...Object.keys(command.entry.group ?? {}),
    ...(isHelp && group.length === 0 ? topics : []),
  ])
  const list = `; 'parley ${[...group, '--help'].join(' ')}' lists ${group.length > 0 ? 'its' : 'the'} commands`
  if (isHelp || group.length > 0) return `${start}${near || list}`
  // What has more than one more word is a prompt rather than a misspelt command.
  if (near !== '' && rest.length < 2) return `${start}${near}`
  return `${start}${near || list}; to ask a model: ${chatCommand([word, ...rest], profile)}`
}

/** A prompt without a command, as a command. */
function chatCommand(words: readonly string[], profile: string | undefined): string {
  const [prompt = ''] = words.join(' ').split(/\s+-/, 1)
  const shown = prompt.length > longestPrompt ? `${prompt.slice(0, longestPrompt)}…` : prompt
  const named = profile === undefined ? '' : ` --profile ${shellQuote(profile)}`
  return `parley chat${named} ${/["$`\\!\p{Cc}]/u.test(shown) ? shellQuote(shown) : `"${shown}"`}`
}

/** How much of a prompt is shown again, in characters. */
const longestPrompt = 60

/** A command that a group has, or a topic of help. */
function findElsewhere(typed: string, isHelp: boolean): string | undefined {
  const groups = Object.keys(entries).filter((name) => Object.hasOwn(entries[name]?.group ?? {}, typed))
  if (groups.length > 0)
    return groups.map((group) => `'parley ${isHelp ? 'help ' : ''}${group} ${typed}'`).join(' or ')
  return !isHelp && isTopic(typed) ? `'parley help ${typed}'` : undefined
}

/** The names that begin like the word, else the most similar one. */
function guess(word: string, names: string[]): string {
  const begun = word.length > 2 ? names.filter((name) => name.startsWith(word)) : []
  return begun.length > 0 ? ` (did you mean ${begun.join(' or ')}?)` : didYouMean(word, names)
}

/** The message about a flag that does not exist. */
function describeFlag({ command, words: [word = ''] }: Unknown): string {
  // The value after = may be a secret.
  const name = word.startsWith('--') ? word.replace(/=.*/s, '') : word
  const start = `unknown flag '${name}'`
  if (/\s/.test(name)) return `${start}; words that begin with a hyphen go after --`
  const [first] = Object.keys(command.entry.group ?? {})
  const pointer = pointerFor(name, command)
  if (pointer !== undefined) return `${start}: ${pointer}`
  const guess = didYouMean(
    name,
    command.options.flatMap(({ long }) => long ?? []),
  )
  const line = ['parley', ...command.words, ...(first === undefined ? [] : [first])].join(' ')
  const way =
    first === undefined
      ? `'${line} --help' lists the flags`
      : `a command's own flags go after its name, as in: ${line} ${name} …`
  return `${start}${guess || `; ${way}`}`
}

const pointersFor = (pointers: readonly Pointer[], name: string) =>
  pointers.filter(([names]) => names.split(', ').includes(name))

/** Before the name of a command -s may as well name a session. */
function pointerFor(name: string, { entry, words, options }: Unknown['command']): string | undefined {
  const pointers = pointersFor(flagPointers, name)
  if (!entry.group) return pointers.find(([, , needs]) => options.some(({ long }) => long === needs))?.[1]
  const [, says] = (words.length === 0 && name !== '-s' && pointers.at(-1)) || []
  return says && `${says}; flags go after the command's name, as in: parley chat "Say hello"`
}
