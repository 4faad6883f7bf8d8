import { didYouMean } from '../argv/spelling.ts'
import { shellQuote } from '../io/shell-quote.ts'
import { documentedModels } from '../wire/gateway/models.ts'
import { entries } from './command-tree.ts'
import { isTopic, topics } from './topics.ts'

const init = "'parley config init' asks for addresses and credentials"

const models = [
  "-m NAME or 'parley config set chatModel NAME' chooses one, imageModel the one for images",
  `documented for chat: ${documentedModels.join(', ')}`,
].join('; ')

const sessions =
  "'parley api agents /v1/sessions' lists the sessions, and with -i FILE makes one, if the service has that"

/** Words that people try, and where to find what they mean. Commands of groups need no row here. */
const pointers = new Map([
  ['login', init],
  ['auth', init],
  ['configure', init],
  ['setup', init],
  ['init', init],
  ['logout', "'parley config unset accessToken' and 'parley config unset apiKey' remove the credentials"],
  ['models', models],
  ['model', models],
  ['ask', "'parley chat PROMPT' asks a model"],
  ['session', sessions],
  ['sessions', sessions],
  ['events wait', "'parley events follow' ends once the session is at rest"],
  ['events create', sessions],
  ['events new', sessions],
  ['events sessions', sessions],
  ['version', "'parley --version'"],
  ['flags', "'parley help settings'"],
  ['config edit', "'parley config set KEY VALUE' changes a value, 'parley config path' names the file"],
  ['config show', "'parley config list'"],
])

/** Words that are not a command; with `isHelp`, words after `help` that are not a topic either. */
export interface UnknownWords {
  words: string[]
  /** The words that follow the unknown one. */
  rest: string[]
  isHelp: boolean
}

/** Says that there is no such command, and which one was probably meant. */
export function describeUnknown({ words, rest, isHelp }: UnknownWords, profile?: string): string {
  const typed = words.join(' ')
  const start = `there is no command ${isHelp ? 'and no topic ' : ''}'${typed}'`
  const way = pointers.get(typed) ?? findElsewhere(typed, isHelp)
  if (way !== undefined) return `${start}: ${way}`
  const group = words.slice(0, -1)
  const names = [...namesIn(group), ...(isHelp && group.length === 0 ? topics : [])]
  const word = words.at(-1) ?? ''
  if (names.length === 0) return start
  if (group.length > 0)
    return `${start}${guess(word, names) || `; 'parley ${group.join(' ')} --help' lists its commands`}`
  const list = "; 'parley --help' lists the commands"
  if (isHelp) return `${start}${guess(word, names) || list}`
  const near = guess(word, names)
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

function namesIn(group: string[]): string[] {
  let level = entries
  for (const name of group) level = level[name]?.group ?? {}
  return Object.keys(level)
}

/** The names that begin like the word, else the most similar one. */
function guess(word: string, names: string[]): string {
  const begun = word.length > 2 ? names.filter((name) => name.startsWith(word)) : []
  return begun.length > 0 ? ` (did you mean ${begun.join(' or ')}?)` : didYouMean(word, names)
}
