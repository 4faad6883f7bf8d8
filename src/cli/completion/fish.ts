import type { Answer } from './answers.ts'
import type { CommandLine, Flag, Place } from './command-line.ts'

/** The tables of the fish script: one `complete` for each name and flag. */
export function writeFishTables({ places, shared }: CommandLine): string {
  const valued = [...places.flatMap(({ flags }) => flags), ...shared.request].filter(
    (flag) => flag.takesValue,
  )
  const spellings = valued.flatMap(({ short, long }) => (short ? [short, long] : [long]))
  const requesting = places.filter((place) => place.shared === 'request').map(({ path }) => quote(path))
  const isGeneral = (flag: Flag) => shared.general.some(({ long }) => long === flag.long)
  const onlyOfRequests = shared.request.filter((flag) => !isGeneral(flag))
  return [
    `function __parley_requests\n    __parley_in ${requesting.join(' ')}\nend\n`,
    `set -g __parley_valued ${[...new Set(spellings)].join(' ')}`,
    `set -g __parley_commands ${places.map(({ path }) => quote(path)).join(' ')}`,
    'complete -c parley -e',
    'complete -c parley -f',
    ...places.flatMap(linesOf),
    ...shared.general.map((flag) => flagLine('', flag)),
    ...onlyOfRequests.map((flag) => flagLine('__parley_requests', flag)),
    '',
  ].join('\n')
}

function linesOf({ path, names, flags, arguments: answers }: Place): string[] {
  const at = (position: number) => `__parley_at ${quote(`${path},${position}`)}`
  return [
    ...names.map(([name, about]) => `${start(at(0))} -a ${name} -d ${quote(about)}`),
    ...answers.flatMap((answer, index) => (answer ? [`${start(at(index))} ${offer(answer)}`] : [])),
    ...flags.map((flag) => flagLine(`__parley_in ${quote(path)}`, flag)),
  ]
}

function flagLine(condition: string, { short, long, about, takesValue, answer }: Flag): string {
  const name = `${short ? `-s ${short.slice(1)} ` : ''}-l ${long.slice(2)}`
  const value = takesValue ? ` -r ${answer ? offer(answer) : '-f'}` : ''
  return `${start(condition)} ${name}${value} -d ${quote(about)}`
}

const start = (condition: string) => `complete -c parley${condition && ` -n ${quote(condition)}`}`

/** fish reads the words after -a again, as it reads a command. */
function offer(answer: Answer): string {
  if (answer === 'files') return '-F'
  if (typeof answer === 'string') return `-f -a '(__parley_${answer})'`
  return `-f -a ${quote(answer.map(quote).join(' '))}`
}

const quote = (text: string) => (/^[\w.-]+$/.test(text) ? text : `'${text.replace(/[\\']/g, '\\$&')}'`)
