import type { Context } from '../../context.ts'
import { toOneLine } from '../../io/escape.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  readEventError,
  readServiceRefusal,
  readWorkflowRunResult,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import { isFollowedTask } from './followed-task.ts'

const kinds = ['refusedToolUses', 'failedServers', 'sessionErrors', 'failedWorkflowRuns'] as const
type Kind = (typeof kinds)[number]

const maxReasonLength = 500

/**
 * Collects failures after which the session may continue: refused tool uses, final errors of the session or
 * an MCP server, failed workflow runs. Prints each once as a warning and counts it for the report.
 */
export class SessionIncidents {
  readonly #context: Context
  readonly #found = new Map<string, { kind: Kind; warning: string; isReported: boolean }>()
  readonly #runNames = new Map<string, string>()

  constructor(context: Context) {
    this.#context = context
    const count = (kind: Kind) => [...this.#found.values()].filter((each) => each.kind === kind).length
    for (const kind of kinds) context.reportData.figures.warnings[kind] = () => count(kind)
  }

  /** Adds earlier events. Only failures since the followed task count (`isFollowedTask`). */
  addEarlier(items: readonly EventItem[], ownIds?: ReadonlySet<string>): void {
    for (const { event } of items) {
      if (isFollowedTask(event, ownIds)) this.#found.clear()
      this.#add(event)
    }
  }

  add(items: readonly EventItem[]): void {
    for (const { event } of items) this.#add(event)
    for (const incident of this.#found.values()) {
      if (!incident.isReported) this.#context.messages.warn(incident.warning)
      incident.isReported = true
    }
  }

  #add(event: SessionEvent): void {
    const { type, id = '', name, workflow_run_id: run } = event
    const refusal = readServiceRefusal(event)
    if (refusal !== undefined) {
      const tool = quoteAndShortenName(typeof name === 'string' && name !== '' ? name : '(no name)')
      const why = refusal === '' ? '' : `: ${quoteAndShortenName(refusal)}`
      const warning = `the service refused the tool use ${quoteAndShortenName(id)} (${tool})${why}`
      this.#addIncident('refusedToolUses', id, warning)
    }
    if (type === 'session.error') this.#addError(event)
    if (typeof run !== 'string' || run === '') {
      const warning = `a workflow run was not created${toSuffix(readEventError(event.error).message)}`
      if (type === 'workflow_run.error') this.#addIncident('failedWorkflowRuns', id, warning)
      return
    }
    if (type === 'workflow_run.created' && typeof name === 'string') this.#runNames.set(run, name)
    if (type === 'workflow_run.status_ended') this.#addRunEnd(event, run)
  }

  #addError({ id = '', error }: SessionEvent): void {
    const { server, message, isFinal } = readEventError(error)
    if (!isFinal) return
    const [kind, what] =
      server === undefined
        ? (['sessionErrors', 'the session had an error that the service does not retry'] as const)
        : (['failedServers', `the MCP server ${quoteAndShortenName(server)} failed permanently`] as const)
    this.#addIncident(kind, server ?? id, `${what}${toSuffix(message)}`)
  }

  #addRunEnd(event: SessionEvent, id: string): void {
    const { type = 'no result', message } = readWorkflowRunResult(event)
    if (type === 'completed') return
    const which = describeWorkflowRun({ id, name: this.#runNames.get(id) })
    const result = `${quoteAndShortenName(type)}${toSuffix(message)}`
    this.#addIncident('failedWorkflowRuns', id, `the workflow run ${which} did not complete: ${result}`)
  }

  #addIncident(kind: Kind, failedPart: string, warning: string): void {
    const id = `${kind} ${failedPart}`
    if (!this.#found.has(id)) this.#found.set(id, { kind, warning, isReported: false })
  }
}

const toSuffix = (message: string | undefined) =>
  message === undefined ? '' : `: ${toOneLine(message, maxReasonLength)}`

export const describeWorkflowRun = ({ id, name }: { id: string; name: string | undefined }): string =>
  name === undefined ? quoteAndShortenName(id) : `${quoteAndShortenName(name)} (${quoteAndShortenName(id)})`

const maxNamedRuns = 10

export function describeWorkflowRuns(runs: readonly Parameters<typeof describeWorkflowRun>[0][]): string {
  const names = runs.slice(0, maxNamedRuns).map(describeWorkflowRun)
  const more = runs.length > names.length ? ` and ${runs.length - names.length} more` : ''
  return `${names.join(', ')}${more}`
}
