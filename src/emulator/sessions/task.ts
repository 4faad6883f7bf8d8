import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { shortenQuote } from '../gateway.ts'

export interface TaskStep {
  type: string
  fields: Record<string, unknown>
  /** If true, the agent creates the event of the step in a new child thread. */
  isInThread?: boolean
  plan?: WorkflowRunPlan
}

export interface WorkflowRunPlan {
  name: string
  phases: string[]
  /** Field `result.type` of the event that ends the run. */
  result: string
}

/** Matches a line with a step: its keyword, its name, and its input as JSON. */
const stepPattern = /^\s*(?:then\s+)?(thread\s+use|use|run|say|refuse|start|fail)\s([^{]*)(\{.*)$/s

/**
 * Matches a line that begins with the keyword of a step. The line may be prose. So such lines are steps only
 * if at least one line of the task matches `stepPattern`.
 */
const stepStart = /^\s*(?:then|thread|use|run|say|refuse|start|fail)(?!\S)/

const exampleSteps = ['use bash {"command":"ls -l"}', 'use web_search {"query":"parley"}']

export const taskStepHelp = [
  `  use bash {"command":"git status"}           a built-in tool`,
  '  use mcp github create_issue {"title":"x"}   a tool of an MCP server',
  '  use custom deploy {"env":"test"}            a custom tool, run by the client',
  '  say {"text":"{\\"verdict\\":\\"ok\\"}"}           no tool, only this answer',
  '  thread use bash {}                          in a child thread',
  '  refuse bash {}                              the service refuses the tool use',
  '  fail github {}                              an MCP server fails permanently',
  '  start ci {"phases":["a"],"result":"error"}  starts a workflow run named "ci"',
  'With "run" instead of "use", a built-in or MCP tool needs no approval. A line with "then" before "use" starts after you have answered the earlier tool uses.',
].join('\n')

/**
 * Parses a message into rounds of steps. Each step is a line, and a line that begins with `then` starts a new
 * round. If the message has no valid step but the words "a tool" or "two tools", returns example steps. For
 * an invalid line that begins like a step, the agent replies that it does not understand the line.
 */
export function parseTaskSteps(texts: readonly string[]): TaskStep[][] {
  const text = texts.join('\n')
  const lines = text.split('\n')
  const isScript = lines.some((line) => stepPattern.test(line))
  const given = isScript ? lines.filter((line) => stepStart.test(line)) : []
  const count = /\btwo tools\b/i.test(text) ? 2 : /\b(a|one) tool\b/i.test(text) ? 1 : 0
  const rounds: TaskStep[][] = []
  for (const line of count > 0 && !given.some(readStep) ? exampleSteps.slice(0, count) : given) {
    if (rounds.length === 0 || /^\s*then\s/.test(line)) rounds.push([])
    rounds.at(-1)?.push(readStep(line) ?? say(describeUnknownStep(line)))
  }
  return rounds
}

const describeUnknownStep = (line: string) =>
  `The emulated agent does not understand “${shortenQuote(line.trim())}”. ` +
  "A step is a line of its own. It starts with use, thread use, run, say, refuse, start or fail, and ends with JSON: see 'parley serve --help'."

const say = (text: string): TaskStep => ({
  type: 'agent.message',
  fields: { content: [{ type: 'text', text }] },
})

function readStep(line: string): TaskStep | undefined {
  const [, words = '', names = '', json = ''] = stepPattern.exec(line) ?? []
  const input = tryParseJson(json)
  if (!isObject(input)) return undefined
  const name = names.trim()
  if (words === 'say') return name === '' && typeof input.text === 'string' ? say(input.text) : undefined
  if (words === 'start') return readRunStep(name, input)
  if (words === 'fail') return /^\S+$/.test(name) ? failServer(name) : undefined
  const step = readToolUseStep(name, input, permissionsByKeyword[words] ?? 'ask')
  return step && words.startsWith('thread') ? { ...step, isInThread: true } : step
}

const permissionsByKeyword: Record<string, string> = { run: 'allow', refuse: 'deny' }

function readToolUseStep(names: string, input: object, permission: string): TaskStep | undefined {
  const [, server, custom, name] = /^(?:mcp\s+(\S+)\s+|(custom)\s+)?(\S+)$/.exec(names) ?? []
  if (name === undefined || (custom && permission !== 'ask')) return undefined
  if (custom) return { type: 'agent.custom_tool_use', fields: { name, input } }
  const reason = { type: 'auto', evaluated_permission: { type: 'deny', reason_code: 'high_risk' } }
  const evaluation = permission === 'deny' ? reason : undefined
  const fields = { name, input, evaluated_permission: permission, evaluation }
  return server === undefined
    ? { type: 'agent.tool_use', fields }
    : { type: 'agent.mcp_tool_use', fields: { mcp_server_name: server, ...fields } }
}

const failServer = (server: string): TaskStep => ({
  type: 'session.error',
  fields: {
    error: {
      type: 'mcp_connection_failed_error',
      mcp_server_name: server,
      message: `the MCP server ${server} cannot be reached`,
      retry_status: { type: 'exhausted' },
    },
  },
})

function readRunStep(name: string, input: Record<string, unknown>): TaskStep | undefined {
  const { phases = ['work'], result = 'completed' } = input
  const isValid = Array.isArray(phases) && phases.every((phase) => typeof phase === 'string')
  if (!isValid || !/^\S+$/.test(name) || typeof result !== 'string') return undefined
  return { type: 'workflow_run.created', fields: { name }, plan: { name, phases, result } }
}
