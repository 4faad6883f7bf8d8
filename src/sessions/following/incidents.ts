import type { Context } from '../../context.ts'
import { oneLine } from '../../io/escape.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  readError,
  readRefusal,
  readRunResult,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'
import type { WorkflowRun } from '../background.ts'
import { formatBriefName } from '../plain-name.ts'
import { isTask } from './followed-turn.ts'

type Kind = 'refusedToolUses' | 'failedServers' | 'failedWorkflowRuns'

/** Maximum length of the service's message in a warning, in characters. */
const maxReasonLength = 500

/**
 * Collects failures in a turn that may still end well: tool uses that the service refused, MCP servers that
 * failed for good, and workflow runs that did not complete. Each is printed once as a warning and counted in
 * the report.
 */
export class Incidents {
  readonly #context: Context
  /** Incidents, by their kind and the id of the part that failed. */
  readonly #found = new Map<string, { kind: Kind; warning: string; isReported: boolean }>()
  /** Names of workflow runs, by id. */
  readonly #names = new Map<string, string>()

  constructor(context: Context) {
    this.#context = context
    const count = (kind: Kind) => [...this.#found.values()].filter((each) => each.kind === kind).length
    const { warnings } = context.summary.figures
    warnings.refusedToolUses = () => count('refusedToolUses')
    warnings.failedServers = () => count('failedServers')
    warnings.failedWorkflowRuns = () => count('failedWorkflowRuns')
  }

  /**
   * Adds earlier events. Only the incidents of the last turn count. `ownIds` are the ids of its task, if
   * known.
   */
  addPast(items: readonly EventItem[], ownIds: ReadonlySet<string> = new Set()): void {
    for (const { event } of items) {
      if (isTask(event) && (ownIds.size === 0 || ownIds.has(event.id ?? ''))) this.#found.clear()
      this.#add(event)
    }
  }

  /** Adds new events and prints new warnings. */
  add(items: readonly EventItem[]): void {
    for (const { event } of items) this.#add(event)
    for (const incident of this.#found.values()) {
      if (!incident.isReported) this.#context.messages.warn(incident.warning)
      incident.isReported = true
    }
  }

  #add(event: SessionEvent): void {
    const { type, id = '', name, workflow_run_id: run } = event
    const refusal = readRefusal(event)
    if (refusal !== undefined) {
      const tool = formatBriefName(typeof name === 'string' && name !== '' ? name : '(no name)')
      const why = refusal === '' ? '' : `: ${formatBriefName(refusal)}`
      this.#find(
        'refusedToolUses',
        id,
        `the service refused the tool use ${formatBriefName(id)} (${tool})${why}`,
      )
    }
    if (type === 'session.error') this.#addServer(event)
    if (typeof run !== 'string' || run === '') {
      if (type === 'workflow_run.error')
        this.#find(
          'failedWorkflowRuns',
          id,
          `a workflow run was not created${asSuffix(readError(event.error).message)}`,
        )
      return
    }
    if (type === 'workflow_run.created' && typeof name === 'string') this.#names.set(run, name)
    if (type === 'workflow_run.status_ended') this.#addEnd(event, run)
  }

  #addServer({ error }: SessionEvent): void {
    const { server, message, isFinal } = readError(error)
    if (server === undefined || !isFinal) return
    this.#find(
      'failedServers',
      server,
      `the MCP server ${formatBriefName(server)} failed for good${asSuffix(message)}`,
    )
  }

  #addEnd(event: SessionEvent, id: string): void {
    const { type = 'no result', message } = readRunResult(event)
    if (type === 'completed') return
    const which = describeRun({ id, name: this.#names.get(id) })
    this.#find(
      'failedWorkflowRuns',
      id,
      `the workflow run ${which} did not complete: ${formatBriefName(type)}${asSuffix(message)}`,
    )
  }

  #find(kind: Kind, what: string, warning: string): void {
    const key = `${kind} ${what}`
    if (!this.#found.has(key)) this.#found.set(key, { kind, warning, isReported: false })
  }
}

const asSuffix = (message: string | undefined) =>
  message === undefined ? '' : `: ${oneLine(message, maxReasonLength)}`

/** Returns the name and id of a workflow run, for a message. */
export const describeRun = ({ id, name }: WorkflowRun): string =>
  name === undefined ? formatBriefName(id) : `${formatBriefName(name)} (${formatBriefName(id)})`
