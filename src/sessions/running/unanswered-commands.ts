import { quoteAndShortenName } from '../quoted-name.ts'
import type { SessionState } from '../session-state.ts'
import type { Audit } from './audit.ts'

/**
 * Lists the `--tool` commands that have started, but whose result may not have reached the session. With an
 * audit file, lists only unfinished commands, because the next run sends the results of the others.
 */
export function listUnansweredCommands(
  { replies, hasFile }: Audit,
  state: SessionState,
): { name: string; text: string }[] {
  return [...replies].flatMap(([id, reply]) => {
    const use = state.getToolUse(id)
    const hasResult = reply.is !== 'closed' && 'result' in reply && reply.result !== undefined
    const isUnanswered = reply.is === 'executing' || (hasResult && !hasFile)
    if (!use || !isUnanswered) return []
    const flag = use.type === 'agent.custom_tool_use' ? '--custom-tool-error' : '--tool-error'
    const what = hasResult
      ? 'has run, but its result may not have arrived'
      : 'was started and did not finish, so its effect is unknown'
    const next = hasFile
      ? 'the resume command answers with an error'
      : `the resume command does not start it again; if it failed, answer with ${flag} ${id}=TEXT`
    return {
      name: use.name,
      text: `the command for ${quoteAndShortenName(use.name)} (${id}) ${what}; ${next}`,
    }
  })
}
