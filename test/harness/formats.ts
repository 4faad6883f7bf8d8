import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { exitCodes } from '../../src/errors.ts'
import { isObject, tryParseJson } from '../../src/wire/json/parse.ts'
import * as z from '../../src/wire/zod.ts'

type Fields = Record<string, z.ZodMiniType>

const text = z.string()
const whole = z.int()
const orNull = <T extends z.ZodMiniType>(schema: T) => z.nullable(schema)
const kind = z.enum([...(Object.keys(exitCodes) as [string]), 'signal'])
const sent = z.enum(['no', 'yes', 'unknown'])
const retry = z.enum(['never', 'later', 'look-first'])
const anObject = z.looseObject({})
const resume = z.array(text)

const failure: Fields = {
  kind,
  exit: whole,
  status: z.optional(whole),
  message: text,
  retryAfter: z.optional(z.number()),
  requestId: z.optional(text),
  sent,
  safeToRetry: z.boolean(),
  retry,
  deadline: z.optional(z.boolean()),
  attempts: z.optional(whole),
  pending: z.optional(z.array(text)),
  hints: z.optional(z.array(text)),
  resume: z.optional(orNull(resume)),
  session: z.optional(text),
  kept: z.optional(z.union([text, z.array(text)])),
  body: z.optional(z.unknown()),
}

/** Fields of the output formats in `parley help formats`. */
export const formatFields: Record<'failure' | 'report' | 'line' | 'audit', Fields> = {
  failure: { format: z.optional(z.literal(1)), ...failure },
  report: {
    format: z.literal(1),
    version: text,
    command: orNull(text),
    exit: whole,
    kind: orNull(kind),
    retry: orNull(retry),
    deadline: z.boolean(),
    message: orNull(text),
    status: orNull(whole),
    sent,
    id: orNull(text),
    model: orNull(text),
    stopReason: orNull(text),
    usage: anObject,
    seconds: z.number(),
    attempts: whole,
    requestId: orNull(text),
    session: orNull(text),
    files: orNull(z.array(text)),
    cost: orNull(anObject),
    sessionUsage: orNull(anObject),
    sessionCost: orNull(anObject),
    toolUses: orNull(anObject),
    warnings: orNull(anObject),
    resume: orNull(resume),
    counts: z.optional(anObject),
    failures: z.optional(anObject),
  },
  line: {
    index: whole,
    id: z.optional(orNull(z.union([text, z.number()]))),
    hash: text,
    ok: z.boolean(),
    text: z.optional(text),
    json: z.optional(z.unknown()),
    files: z.optional(z.array(text)),
    links: z.optional(z.array(text)),
    response: z.optional(z.unknown()),
    model: z.optional(text),
    stopReason: z.optional(orNull(text)),
    warning: z.optional(text),
    usage: z.optional(anObject),
    attempts: z.optional(whole),
    seconds: z.optional(z.number()),
    error: z.optional(anObject),
  },
  audit: {
    time: text,
    session: text,
    toolUse: orNull(text),
    task: z.optional(text),
    type: z.optional(text),
    server: z.optional(text),
    name: z.optional(text),
    input: z.optional(z.unknown()),
    event: text,
    decision: z.optional(z.enum(['allow', 'deny', 'ask'])),
    by: z.optional(z.enum(['rule', 'default', 'person', 'tool'])),
    rule: z.optional(whole),
    reason: z.optional(text),
    result: z.optional(anObject),
    rest: z.optional(text),
    known: z.optional(anObject),
  },
}

export type FormatName = keyof typeof formatFields

/** Creates a schema that accepts exactly the fields of a format. */
export const createFormatSchema = (name: FormatName) => z.strictObject(formatFields[name])

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
  const check = (form: FormatName, value: unknown) => {
    const parsed = createFormatSchema(form).safeParse(value)
    if (!parsed.success)
      throw new Error(
        `${form} of ${argv.join(' ')}: ${JSON.stringify(parsed.error.issues)} in ${JSON.stringify(value)}`,
      )
  }
  if (getLastValue(argv, '--errors') === 'json' && code !== 0)
    for (const line of parseLines(err)) if ('error' in line) check('failure', line.error)
  const report = getLastValue(argv, '--report')
  if (report && code !== 2 && code !== 11 && isFile(resolve(cwd, report)))
    check('report', JSON.parse(readFileSync(resolve(cwd, report), 'utf8')))
  const isBatch = getLastValue(argv, '--batch') !== undefined && !argv.includes('--dry-run')
  if (isBatch && !argv.includes('--help'))
    for (const line of parseLines(out)) {
      check('line', line)
      if ('error' in line) check('failure', line.error)
    }
  const audit = getLastValue(argv, '--audit')
  if (audit && code !== 2 && code !== 11 && isFile(resolve(cwd, audit)))
    for (const line of parseLines(readFileSync(resolve(cwd, audit), 'utf8'))) check('audit', line)
}
