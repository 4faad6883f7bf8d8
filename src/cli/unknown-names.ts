import { suggestSpelling } from '../argv/spelling.ts'
import { findUnknownNameHint } from './hints.ts'
import type { ParleyCommand, UnknownNameError } from './parley-command.ts'
import { isTopic, topics } from './topics.ts'

/** `isHelp`: the word follows `parley help`, so it may also be a topic. */
export function describeUnknownName(unknown: UnknownNameError, isHelp = false): string {
  const { command, words } = unknown
  const [word = '', ...rest] = words
  if (word.startsWith('-')) return describeFlag(unknown)
  const group = command.commandNames
  if (isHelp && group.length === 0 && isTopic(word))
    return `the topic '${word}' has no subtopics; 'parley help' prints one topic at a time: parley help ${word}`
  const typed = [...group, word].join(' ')
  const start = `unknown command ${isHelp ? 'or topic ' : ''}'${typed}'`
  const hint = findUnknownNameHint(typed) ?? suggestFromOtherGroups(command, typed, isHelp)
  if (hint !== undefined) return `${start}: ${hint}`
  if (group.length > 0 && !command.entry.group)
    return `${start}: 'parley ${group.join(' ')}' has no subcommands`
  const isTopicMissing = isHelp && group.length === 0
  const names = [...Object.keys(command.entry.group ?? {}), ...(isTopicMissing ? topics : [])]
  // `policy` is a command and a topic, and must be suggested once.
  const near = suggestNames(word, [...new Set(names)])
  const list = `${isTopicMissing ? `; topics: ${topics.join(', ')}` : ''}; 'parley ${[...group, '--help'].join(' ')}' lists ${group.length > 0 ? 'its' : 'the'} commands`
  // Several words after an unknown word are probably a prompt, not a misspelled command.
  const mayBePrompt = !isHelp && group.length === 0 && (near === '' || rest.length > 1)
  return `${start}${near || list}${mayBePrompt ? '; to ask a model, put chat before the prompt' : ''}`
}

function suggestFromOtherGroups(
  { path: [root] }: ParleyCommand,
  typed: string,
  isHelp: boolean,
): string | undefined {
  const groups = Object.entries(root?.entry.group ?? {})
    .filter(([, { group }]) => group && Object.hasOwn(group, typed))
    .map(([name]) => name)
  if (groups.length > 0)
    return groups.map((group) => `'parley ${isHelp ? 'help ' : ''}${group} ${typed}'`).join(' or ')
  return !isHelp && isTopic(typed) ? `'parley help ${typed}' prints this topic as text` : undefined
}

function suggestNames(word: string, names: string[]): string {
  const letters = word.replace(/^-+/, '')
  const begun = letters.length > 2 ? names.filter((name) => name.startsWith(word)) : []
  return begun.length > 0 ? ` (did you mean ${begun.join(' or ')}?)` : suggestSpelling(word, names)
}

function describeFlag({ command, words: [word = ''] }: UnknownNameError): string {
  // The text after = may be a secret, so the message omits it.
  const name = word.startsWith('--') ? word.replace(/=.*/s, '') : word
  if (name !== word && [...command.longFlags, '--help'].includes(name)) return `${name} takes no value`
  const start = `unknown flag '${name}'`
  if (/\s/.test(name)) return `${start}; words that begin with a hyphen go after --`
  const [first] = Object.keys(command.entry.group ?? {})
  // parley's flags are spelled `--max-tokens`; other tools have `--max_tokens` and `--maxTokens`.
  const longName = name
    .replace(/^-+/, '--')
    .replaceAll('_', '-')
    .replace(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  if (command.longFlags.includes(longName)) return `${start} (did you mean ${longName}?)`
  const hint =
    findUnknownNameHint([...command.commandNames, name].join(' ')) ??
    findUnknownNameHint(name) ??
    findUnknownNameHint(longName)
  if (hint !== undefined) return `${start}: ${hint}`
  const guess = suggestNames(longName, command.longFlags)
  const line = ['parley', ...command.commandNames, ...(first === undefined ? [] : [first])].join(' ')
  const helpHint =
    first === undefined
      ? `'${line} --help' lists the flags`
      : `a command's own flags go after its name, as in: ${line} ${name} …`
  return `${start}${guess || `; ${helpHint}`}`
}
