import { isObject, tryParseJson } from '../../wire/json/parse.ts'
import { brief } from '../gateway.ts'

/** A tool use or a message that the emulated agent is asked for. */
export interface TaskStep {
  type: string
  /** What its event has beside the type. A tool use that is allowed is carried out at once, without waiting for anybody. */
  fields: Record<string, unknown>
}

/** A line that begins as a step does, and has an input. */
const form = /^\s*(?:then\s+)?(use|run|say)\s([^{]*)(\{.*)$/s

/** What "a tool" and "two tools" stand for. */
const examples = ['use bash {"command":"ls -l"}', 'use web_search {"query":"parley"}']

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
  const text = texts.join('\n')
  const given = text.split('\n').filter((line) => form.test(line))
  const count = /\btwo tools\b/i.test(text) ? 2 : /\b(a|one) tool\b/i.test(text) ? 1 : 0
  const rounds: TaskStep[][] = []
  for (const line of count > 0 && !given.some(readStep) ? examples.slice(0, count) : given) {
    if (rounds.length === 0 || /^\s*then\s/.test(line)) rounds.push([])
    rounds.at(-1)?.push(readStep(line) ?? say(notUnderstood(line)))
  }
  return rounds
}

const notUnderstood = (line: string) =>
  `The emulated agent does not understand “${brief(line)}”: see the help on serve.`

const say = (text: string): TaskStep => ({
  type: 'agent.message',
  fields: { content: [{ type: 'text', text }] },
})

function readStep(line: string): TaskStep | undefined {
  const [, verb, names = '', json = ''] = form.exec(line) ?? []
  const input = tryParseJson(json)
  if (!isObject(input)) return undefined
  if (verb === 'say')
    return names.trim() === '' && typeof input.text === 'string' ? say(input.text) : undefined
  const [, server, custom, name] = /^(?:mcp\s+(\S+)\s+|(custom)\s+)?(\S+)$/.exec(names.trim()) ?? []
  if (name === undefined || (custom && verb === 'run')) return undefined
  if (custom) return { type: 'agent.custom_tool_use', fields: { name, input } }
  const fields = { name, input, evaluated_permission: verb === 'run' ? 'allow' : 'ask' }
  return server === undefined
    ? { type: 'agent.tool_use', fields }
    : { type: 'agent.mcp_tool_use', fields: { mcp_server_name: server, ...fields } }
}
