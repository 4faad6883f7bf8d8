import type { Context } from '../../context.ts'
import { usageError } from '../../errors.ts'
import { durationExamples, parseDurationMs } from '../../settings/duration.ts'
import { createPolicyPauser, type Policy, readPolicy } from '../policy/policy.ts'
import { requireTimeLeft } from '../reconnect-policy.ts'
import { parseSentEvents } from '../sending/receipt.ts'
import { createEventsBody } from '../sending/request.ts'
import { createSessionClient, type SessionOptions } from '../session.ts'
import { readToolFlags } from './judgement.ts'
import { computeShortSha256 } from './task.ts'
import { addSchemaInstructions, readAnswerFlags } from './task-answer.ts'

interface RunOptions extends SessionOptions {
  input?: string
  file?: string[]
  after?: string
  policy?: string
  audit?: string
  tool?: string[]
  toolTimeout?: string
  failOnToolError?: boolean
  maxTotalTokens?: number
  /** Amount in major currency units, such as dollars. */
  maxCost?: string
  schema?: string
  last?: boolean
  output?: string
}

export type RunPlan = Awaited<ReturnType<typeof readRunPlan>>

export async function readRunPlan(context: Context, options: RunOptions, words: string[]) {
  const [toolCommands, toolTimeoutMs] = [readToolFlags(options.tool), readToolTimeoutMs(options.toolTimeout)]
  const { settings, parts, caller } = await createSessionClient(context, options)
  const pauser = createPolicyPauser(() => requireTimeLeft(context.deadline))
  const policy: Policy =
    options.policy === undefined
      ? { rules: [], fallback: { decision: 'ask' } }
      : await readPolicy(await context.input.readText(options.policy, '--policy'), options.policy)
  const answerOptions = await readAnswerFlags(context, settings, options)
  const { schema } = answerOptions
  const given = await createEventsBody(context, options, words)
  const body = given && schema ? addSchemaInstructions(context, given, schema) : given
  if (body && options.after !== undefined)
    throw usageError('--after continues an earlier task, so it excludes a new task')
  const { dryRun, curl } = context.flags
  if ((dryRun || curl) && !body)
    throw usageError('--dry-run and --curl print the request that sends a task: add a task')
  /** `undefined` if the run continues the session without a new task. */
  const task = body && { body, events: parseSentEvents(body), hash: computeShortSha256(body) }
  return {
    address: settings.values.agentsUrl,
    caller,
    parts,
    task,
    /** Id of the last event of a task that an earlier run sent without an audit file. */
    after: options.after,
    policy: { ...policy, pauser, toolCommands },
    toolTimeoutMs,
    answerOptions,
    limits: { maxTotalTokens: options.maxTotalTokens, maxCost: options.maxCost },
    auditPath: options.audit,
    failsOnToolError: options.failOnToolError === true,
  }
}

function readToolTimeoutMs(text = '600'): number {
  const limitMs = parseDurationMs(text, 's')
  if (limitMs === undefined)
    throw usageError(`--tool-timeout ${text}: must be a number of seconds, or a duration ${durationExamples}`)
  return limitMs === 0 ? Infinity : limitMs
}
