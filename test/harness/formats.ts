import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { isObject, tryParseJson } from '../../src/wire/json/parse.ts'

/** Fields of the output formats in `parley help formats`, in its order. A question mark marks an optional field. */
const formats = {
  failure:
    'format? kind exit status? message retryAfter? requestId? sent safeToRetry retry deadline? attempts? pending? hints? resume? session? kept? body?',
  report:
    'format version command exit kind retry deadline message status sent id model stopReason usage seconds attempts requestId session files cost sessionUsage sessionCost toolUses warnings resume counts? failures?',
  line: 'index id? hash ok text? json? files? links? response? model? stopReason? warning? usage? attempts? seconds? error?',
  audit:
    'time session toolUse task? type? server? name? input? event decision? by? rule? reason? result? rest? known?',
}

export type FormatName = keyof typeof formats

export const formatNames = Object.keys(formats) as FormatName[]

export const listFields = (name: FormatName): string[] => formats[name].replaceAll('?', '').split(' ')

/** Returns the unknown fields of an object, and the required fields that it lacks. */
function findWrongFields(name: FormatName, value: object): string[] {
  const required = formats[name].split(' ').filter((field) => !field.endsWith('?'))
  const given = Object.keys(value)
  const unknown = given.filter((field) => !listFields(name).includes(field))
  return [...unknown, ...required.filter((field) => !given.includes(field))]
}

/** Returns the JSON objects of a text, one per line. Skips other lines, such as questions to a person. */
const parseLines = (text: string): object[] =>
  text.split('\n').flatMap((line) => {
    const value = tryParseJson(line)
    return isObject(value) ? [value] : []
  })

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

function getLastValue(argv: readonly string[], flag: string): string | undefined {
  const at = argv.lastIndexOf(flag)
  const attached = argv.findLast((word) => word.startsWith(`${flag}=`))
  return at >= 0 ? argv[at + 1] : attached?.slice(flag.length + 1)
}

/** Throws if the JSON output of a run has an unknown field, or lacks a required field. */
export function requireFormats(
  argv: readonly string[],
  { code, out, err, cwd }: { code: number; out: string; err: string; cwd: string },
): void {
  if (argv.includes('--')) return
  const check = (form: FormatName, value: object) => {
    const wrong = findWrongFields(form, value)
    if (wrong.length > 0)
      throw new Error(`${form} of ${argv.join(' ')}: ${wrong} in ${JSON.stringify(value)}`)
  }
  if (getLastValue(argv, '--errors') === 'json' && code !== 0)
    for (const line of parseLines(err)) if ('error' in line) check('failure', line.error as object)
  const report = getLastValue(argv, '--report')
  if (report && code !== 2 && code !== 11 && isFile(resolve(cwd, report)))
    check('report', JSON.parse(readFileSync(resolve(cwd, report), 'utf8')))
  const isBatch = getLastValue(argv, '--batch') !== undefined && !argv.includes('--dry-run')
  if (isBatch && !argv.includes('--help'))
    for (const line of parseLines(out)) {
      check('line', line)
      if ('error' in line) check('failure', line.error as object)
    }
  const audit = getLastValue(argv, '--audit')
  if (audit && code !== 2 && code !== 11 && isFile(resolve(cwd, audit)))
    for (const line of parseLines(readFileSync(resolve(cwd, audit), 'utf8'))) check('audit', line)
}
