import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { startOf } from '../../wire/text-start.ts'

/** A tool use or a message that the emulated agent is asked for. */
export interface TaskStep {
  type: 'agent.tool_use' | 'agent.mcp_tool_use' | 'agent.custom_tool_use' | 'agent.message'
  /** What its event has beside the type. */
  fields: Record<string, unknown>
  /** A tool that is carried out at once, without waiting for anybody. */
  isUnasked: boolean
}

const examples: TaskStep[] = [
  { type: 'agent.tool_use', fields: { name: 'bash', input: { command: 'ls -l' } }, isUnasked: false },
  { type: 'agent.tool_use', fields: { name: 'web_search', input: { query: 'parley' } }, isUnasked: false },
]

/** What `readTask` understands, as a page of help says it. */
export const taskForms = [
  `  use bash {"command":"git status"}           a tool of the agent's own`,
  '  use mcp github create_issue {"title":"x"}   one of an MCP server',
  '  use custom deploy {"env":"test"}            one that the client carries out',
  '  say {"text":"{\\"verdict\\":\\"ok\\"}"}           no tool, but just these words',
  '"run" for "use" asks nobody; "then" before it waits.',
].join('\n')

/**
 * Reads what a message asks for, as steps that come together, one round after the other: lines
 * `[then] use|run [mcp SERVER|custom] NAME {INPUT}` or `[then] say {"text":TEXT}`, or the words "a tool" or "two tools". Of
 * a line that only looks like one of these the agent says so.
 */
export function readTask(texts: readonly string[]): TaskStep[][] {
  const lines = texts.flatMap((text) => text.split('\n')).filter(isStep)
  const steps = lines.map((line) => ({ line, ...readStep(line) }))
  const text = texts.join(' ')
  const count = /\btwo tools\b/i.test(text) ? 2 : /\b(a|one) tool\b/i.test(text) ? 1 : 0
  if (count > 0 && !steps.some(({ step }) => step)) return [examples.slice(0, count)]
  const rounds: TaskStep[][] = []
  for (const { line, step = say(notUnderstood(line)), isLater } of steps) {
    if (isLater || rounds.length === 0) rounds.push([step])
    else rounds.at(-1)?.push(step)
  }
  return rounds
}

const notUnderstood = (line: string) =>
  `The emulated agent does not understand “${startOf(line, 80)}”: see the help on serve.`

const say = (text: string): TaskStep => ({
  type: 'agent.message',
  fields: { content: [{ type: 'text', text }] },
  isUnasked: false,
})

/** Whether a line begins as a step does, and has an input. */
const isStep = (line: string): boolean => /^\s*(then\s+)?(use|run|say)\s/.test(line) && line.includes('{')

function readStep(line: string): { step?: TaskStep | undefined; isLater: boolean } {
  const open = line.indexOf('{')
  const words = line.slice(0, open).trim().split(/\s+/)
  const isLater = words[0] === 'then'
  if (isLater) words.shift()
  const verb = words.shift()
  const isUnasked = verb === 'run'
  const input = tryParseJson(line.slice(open))
  if (verb === 'say') {
    const isSaid = words.length === 0 && isObject(input) && typeof input.text === 'string'
    return { step: isSaid ? say(String(input.text)) : undefined, isLater }
  }
  const kind = readKind(words)
  if (!kind || !isObject(input) || (isUnasked && kind.type === 'agent.custom_tool_use')) return { isLater }
  const { type, ...names } = kind
  const permission =
    type === 'agent.custom_tool_use' ? {} : { evaluated_permission: isUnasked ? 'allow' : 'ask' }
  return { step: { type, fields: { ...names, input, ...permission }, isUnasked }, isLater }
}

function readKind(
  words: string[],
): ({ type: TaskStep['type']; name: string } & Record<string, string>) | undefined {
  const [first = '', second = '', third = ''] = words
  if (words.length === 1) return { type: 'agent.tool_use', name: first }
  if (words.length === 2 && first === 'custom') return { type: 'agent.custom_tool_use', name: second }
  if (words.length === 3 && first === 'mcp')
    return { type: 'agent.mcp_tool_use', mcp_server_name: second, name: third }
  return undefined
}
