import { saveReceivedAnswer } from '../../content/saved-answer.ts'
import type { Context } from '../../context.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import type { SessionState } from '../session-state.ts'
import type { Audit } from './audit.ts'

/**
 * Lists the `--tool` commands that have started, but whose result may not have reached the session. Omits
 * results in the audit file, because the next run sends them.
 */
export function listUnansweredCommands({ replies, hasFile, unrecorded }: Audit, state: SessionState) {
  return [...replies].flatMap(([id, reply]) => {
    const use = state.getToolUse(id)
    const result = reply.is === 'closed' ? undefined : reply.result
    const isUnneeded = reply.is === 'has-result' && state.findClosedReason(id) !== undefined
    const isRecorded = hasFile && !unrecorded.has(id)
    const isUnanswered = reply.is === 'executing' || (result && !isRecorded && !isUnneeded)
    return use && isUnanswered ? [{ id, use, result, hasFile }] : []
  })
}

/** Describes the command. Also saves its result, because a command runs only once. */
export function describeUnansweredCommand(
  context: Pick<Context, 'host'>,
  { id, use, result, hasFile }: ReturnType<typeof listUnansweredCommands>[number],
): string {
  const command = `the command for ${quoteAndShortenName(use.name)} (${id})`
  const flag = use.type === 'agent.custom_tool_use' ? '--custom-tool' : '--tool'
  const resumeText = 'the resume command does not start it again'
  if (!result) {
    const next = hasFile
      ? 'the resume command answers with an error'
      : `${resumeText}; if it failed, answer with ${flag}-error ${id}=TEXT`
    return `${command} was started and did not finish, so its effect is unknown; ${next}`
  }
  const { outcome = 'is empty', name } = saveReceivedAnswer(context, result.text) ?? {}
  const answer = `${flag}-${result.isError ? 'error' : 'result'} ${id}=${name === undefined ? 'TEXT' : `@${name}`}`
  return hasFile
    ? `${command} has run, but its result could not be recorded; the result ${outcome}; answer with ${answer} before you resume, because the resume command answers with an error`
    : `${command} has run, but its result may not have arrived; the result ${outcome}; ${resumeText}; if the session still waits, answer with ${answer}`
}
