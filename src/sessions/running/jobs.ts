import { CliError } from '../../errors.ts'
import { Endurance } from '../following/endurance.ts'
import { type Answer, result } from './answer-events.ts'
import type { Call } from './call.ts'
import type { RunningSession } from './running-session.ts'
import { runTool, type ToolResult } from './tools.ts'

export interface JobOptions {
  /** Commands that carry out tool uses here, by the tool's name. */
  tools: ReadonlyMap<string, string>
  /** How long a command may take. Milliseconds. */
  toolTimeout: number
  /** The session's id. */
  id: string
}

/** Carries out tool uses by commands, each once. */
export class Jobs {
  readonly #session: RunningSession
  readonly #options: JobOptions
  /** What commands of this run gave, by the id of the tool use. */
  readonly #results = new Map<string, ToolResult>()

  constructor(session: RunningSession, options: JobOptions) {
    this.#session = session
    this.#options = options
  }

  /** The answer to a tool use whose command was started before: here, or in a run that was killed. */
  find(call: Call): Answer | undefined {
    const known = this.#results.get(call.id)
    if (known) return result(call, known)
    if (!this.#session.audit.earlier.started.has(call.id)) return undefined
    return result(call, { text: 'interrupted, effect unknown', isError: true })
  }

  /** Throws a `CliError` where the deadline passes meanwhile. */
  async carryOut(call: Call): Promise<Answer> {
    const { context, caller, audit } = this.#session
    const { tools, toolTimeout, id: session } = this.#options
    const { id, name, inputText: input } = call
    const endurance = new Endurance(context, caller)
    endurance.checkDeadline()
    audit.add({ toolUse: id, name, event: 'start' })
    const limit = Math.min(toolTimeout, endurance.left)
    const output = await runTool(context, { command: tools.get(name) ?? '', name, id, session, input, limit })
    if (endurance.left <= 0)
      throw new CliError('stopped', `the deadline passed while the command for ${name} ran`, { sent: 'yes' })
    audit.add({ toolUse: id, name, event: 'end', reason: output.isError ? output.text : undefined })
    this.#results.set(id, output)
    return result(call, output)
  }
}
