import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type FormName, schemaOf } from '../../src/cli/formats.ts'
import { isObject, tryParseJson } from '../../src/wire/json/parse.ts'

/** The objects that stand on lines: a person may be asked beside them, and a test may have torn one. */
const linesOf = (text: string): object[] =>
  text.split('\n').flatMap((line) => {
    const value = tryParseJson(line)
    return isObject(value) ? [value] : []
  })

const isFile = (path: string) => statSync(path, { throwIfNoEntry: false })?.isFile() === true

/** The value of a flag, of which the last one counts. */
function lastValue(argv: readonly string[], flag: string): string | undefined {
  const at = argv.lastIndexOf(flag)
  const attached = argv.findLast((word) => word.startsWith(`${flag}=`))
  return at >= 0 ? argv[at + 1] : attached?.slice(flag.length + 1)
}

/** Throws if what programs read of a run has a field that its form does not name, or lacks one. */
export function requireForms(
  argv: readonly string[],
  { code, out, err, cwd }: { code: number; out: string; err: string; cwd: string },
): void {
  if (argv.includes('--')) return
  const check = (form: FormName, value: unknown) => {
    const parsed = schemaOf(form).safeParse(value)
    if (!parsed.success)
      throw new Error(
        `${form} of ${argv.join(' ')}: ${JSON.stringify(parsed.error.issues)} in ${JSON.stringify(value)}`,
      )
  }
  if (lastValue(argv, '--errors') === 'json' && code !== 0)
    for (const line of linesOf(err)) if ('error' in line) check('failure', line.error)
  const report = lastValue(argv, '--report')
  if (report && code !== 2 && code !== 11 && isFile(resolve(cwd, report)))
    check('report', JSON.parse(readFileSync(resolve(cwd, report), 'utf8')))
  const isBatch = lastValue(argv, '--batch') !== undefined && !argv.includes('--dry-run')
  if (isBatch && !argv.includes('--help'))
    for (const line of linesOf(out)) {
      check('line', line)
      if ('error' in line) check('failure', line.error)
    }
  const audit = lastValue(argv, '--audit')
  if (audit && code !== 2 && code !== 11 && isFile(resolve(cwd, audit)))
    for (const line of linesOf(readFileSync(resolve(cwd, audit), 'utf8'))) check('audit', line)
}
