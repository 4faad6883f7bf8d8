import { outcomes } from '../errors.ts'
import * as z from '../wire/zod.ts'

/** A field of a form that programs read: how it is checked, and what it is. */
type Field = [schema: z.ZodMiniType, about: string]

const text = z.string()
const whole = z.int()
const orNull = <T extends z.ZodMiniType>(schema: T) => z.nullable(schema)
const kind = z.enum([...(Object.keys(outcomes) as [string]), 'signal'])
const sent = z.enum(['no', 'yes', 'unknown'])
const retry = z.enum(['never', 'later', 'look-first'])
const anObject = z.looseObject({})
const resume = z.array(text)

/** Fields of a failure; those that a failure need not have are optional. */
const failure: Record<string, Field> = {
  kind: [kind, "the name of the exit code: 'parley help exit-codes' lists them"],
  exit: [whole, 'the exit code'],
  status: [z.optional(whole), 'the HTTP status'],
  message: [text, 'the failure in words, with what the service said'],
  retryAfter: [z.optional(z.number()), 'seconds that the service asks to wait'],
  requestId: [z.optional(text), "the service's id of the request"],
  sent: [sent, 'whether the request arrived: no, yes or unknown'],
  safeToRetry: [z.boolean(), 'true if retry is later'],
  retry: [retry, 'never, later or look-first'],
  deadline: [z.optional(z.boolean()), 'true if --deadline made the failure'],
  attempts: [z.optional(whole), 'the number of requests'],
  pending: [z.optional(z.array(text)), 'the ids of the tool uses that wait for an answer'],
  resume: [z.optional(orNull(resume)), 'the command that resumes the work, without parley'],
  kept: [z.optional(z.union([text, z.array(text)])), 'the file that has what was paid for'],
  body: [z.optional(z.unknown()), "the service's error: JSON, or a text of at most 4 KiB"],
}

/** Every form that is kept for a major version. The form of a policy is in `sessions/policy`. */
export const forms: Record<
  'failure' | 'report' | 'line' | 'audit',
  { where: string; fields: Record<string, Field> }
> = {
  failure: {
    where: 'A failure: with --errors json, "error" in one line on stderr.',
    fields: { format: [z.optional(z.literal(1)), 'the version of this form'], ...failure },
  },
  report: {
    where: 'A report: the file of --report. What is unknown is null, never 0.',
    fields: {
      format: [z.literal(1), 'the version of this form'],
      version: [text, 'the version of parley'],
      command: [orNull(text), 'the command'],
      exit: [whole, 'the exit code'],
      kind: [orNull(kind), 'the name of the exit code'],
      retry: [orNull(retry), 'of a failure: never, later or look-first'],
      deadline: [z.boolean(), 'whether --deadline made the failure'],
      sent: [sent, 'whether the requests arrived'],
      id: [orNull(text), 'the id of the answer'],
      model: [orNull(text), 'the model'],
      stopReason: [orNull(text), 'why the answer ended'],
      usage: [anObject, 'tokens: inputTokens, outputTokens, totalTokens and others'],
      seconds: [z.number(), 'how long the run took'],
      attempts: [whole, 'the number of requests'],
      requestId: [orNull(text), "the service's id of the last request"],
      session: [orNull(text), 'the session'],
      files: [orNull(z.array(text)), 'the files that results were written to'],
      cost: [orNull(anObject), 'of a run: amount in whole minor units, and currency'],
      sessionUsage: [orNull(anObject), 'tokens of the whole session'],
      sessionCost: [orNull(anObject), 'cost of the whole session'],
      toolUses: [orNull(anObject), 'of a run: allowed, denied, run here, open'],
      resume: [orNull(resume), 'the command that resumes the work, without parley'],
      counts: [z.optional(anObject), 'of a batch: total, ok, failed, skipped, notDone'],
      failures: [z.optional(anObject), 'of a batch: failed lines by kind'],
    },
  },
  line: {
    where: 'A line of a batch, on stdout or in the file of --results.',
    fields: {
      index: [whole, 'the number of the line in the input, from 1'],
      id: [z.optional(orNull(z.union([text, z.number()]))), "the line's own id, a text or a number"],
      hash: [text, 'of the model and the body; #2, #3 where they come again'],
      ok: [z.boolean(), 'whether there is an answer'],
      text: [z.optional(text), 'the answer of a chat'],
      json: [z.optional(z.unknown()), 'the answer, with --schema'],
      files: [z.optional(z.array(text)), 'the images that were saved'],
      links: [z.optional(z.array(text)), 'the images that are links'],
      response: [z.optional(z.unknown()), "the service's JSON, with --raw"],
      model: [z.optional(text), 'the model that answered'],
      stopReason: [z.optional(text), 'why the answer ended'],
      usage: [z.optional(anObject), 'tokens'],
      attempts: [z.optional(whole), 'the number of requests'],
      seconds: [z.optional(z.number()), 'how long it took'],
      error: [z.optional(anObject), 'if ok is false: the fields of a failure'],
    },
  },
  audit: {
    where: 'A line of the file of --audit.',
    fields: {
      time: [text, 'when'],
      session: [text, 'the session'],
      toolUse: [orNull(text), 'the id of the tool use; null if the line is about none'],
      task: [z.optional(text), 'the hash of the task that the line is about'],
      type: [z.optional(text), "the type of the tool use's event"],
      server: [z.optional(text), 'the MCP server'],
      name: [z.optional(text), 'the tool'],
      input: [z.optional(z.unknown()), "the tool's input"],
      event: [text, 'decision, start, end, sent, accepted, refused, unknown, done and others'],
      decision: [z.optional(z.enum(['allow', 'deny', 'ask'])), 'allow, deny or ask'],
      by: [z.optional(z.enum(['rule', 'default', 'person', 'tool'])), 'rule, default, person or tool'],
      rule: [z.optional(whole), 'the number of the rule, from 0'],
      reason: [z.optional(text), 'why'],
      result: [z.optional(anObject), "a command's result as it is sent"],
      rest: [z.optional(text), 'the last rest before a reply was sent'],
      known: [z.optional(anObject), 'the session before the task was sent'],
    },
  },
}

export type FormName = keyof typeof forms

/** Checks that a value has the fields of a form, and no other. */
export const schemaOf = (name: FormName) =>
  z.strictObject(
    Object.fromEntries(Object.entries(forms[name].fields).map(([field, [schema]]) => [field, schema])),
  )
