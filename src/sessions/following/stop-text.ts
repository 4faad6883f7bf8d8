import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { escapeShellWord } from '../../io/shell-quote.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import type { SessionClient } from '../session.ts'
import { formatBudgetCommand, formatSessionCommand } from '../session-command.ts'
import { needsClientResult, type SessionState } from '../session-state.ts'
import { findToolInput, summarizeToolUse } from '../tool-use-summary.ts'

export const createWaitingError = (access: SessionClient, state: SessionState, ids: string[]): CliError =>
  new CliError('waiting', `${access.parts.params.session} waits for an answer`, {
    problems: ids.map((id) => describeWaitingToolUse(state, id)),
    ...describeWaitingToolUses(access, state, ids),
  })

const isLaidOut = ({ flags, host }: Context) => host.stderr.isTerminal && !flags.errors

export function describeWaitingToolUses(access: SessionClient, state: SessionState, ids: string[]) {
  const uses = ids.map((id) => ({ ...state.getToolUse(id), id }))
  const forResults = uses.filter(needsClientResult)
  const others = uses.filter((use) => !needsClientResult(use))
  const changed = others.filter(({ isContradicted }) => isContradicted)
  const unchanged = others.filter(({ isContradicted }) => !isContradicted)
  const command = formatSessionCommand(access, 'confirm')
  const hint =
    state.unlisted.length > 0
      ? `the service does not report which of these tool uses wait; to answer one: ${command} ID --allow\n${denyHint}`
      : isLaidOut(access.context)
        ? `answer with: ${command} --pending`
        : `answer with: ${command} ${formatToolUseIds(unchanged)} --allow\n${denyHint}`
  const hints = [
    ...(unchanged.length > 0 ? [hint] : []),
    // Only a prompt shows the current input. A printed command with --allow could approve an unknown input.
    ...(changed.length > 0 ? [`to answer at a prompt: ${command} ${formatToolUseIds(changed)}`] : []),
    ...[...new Set(forResults.map(({ type = '' }) => type))].map((type) => {
      const same = forResults.filter((use) => use.type === type).map(({ id }) => id)
      return `to send a result: ${formatToolResultCommand(access, type, same)}`
    }),
  ]
  return { pendingToolUseIds: ids, consequence: hints.join('\n') }
}

export function createBudgetError(access: SessionClient): CliError {
  const { context, parts } = access
  const higherBudget = '{"type":"limit","max_list_cost":{"amount":"AMOUNT","currency":"CURRENCY"}}'
  return new CliError('stuck', `${parts.params.session} stopped: budget_reached, its budget is used up`, {
    problems: [
      `to raise it to AMOUNT in minor units, such as cents: ${formatBudgetCommand(access, higherBudget)}`,
      `to remove it: ${formatBudgetCommand(access, 'null')}`,
    ],
    resumeArguments: context.tracker.getResumeCommand(),
  })
}

/** Printed on a separate line, because people copy the whole line with the command. */
const denyHint = 'or with --deny'

export function formatToolResultCommand(access: SessionClient, type: string, ids: string[]): string {
  const [id = ''] = ids
  const value = ids.length === 1 && isSafeWord(id) ? `${escapeShellWord(id)}=TEXT` : 'ID=TEXT'
  const flag = type === 'agent.custom_tool_use' ? '--custom-tool-result' : '--tool-result'
  return `${formatSessionCommand(access, 'send')} ${flag} ${value}`
}

function formatToolUseIds(uses: readonly { id: string }[]): string {
  const words = uses.map(({ id }) => escapeShellWord(id)).join(' ')
  return words.length > 1000 || !uses.every(({ id }) => isSafeWord(id)) ? '--pending' : words
}

const isSafeWord = (id: string) => id.length <= 1000 && !id.startsWith('-')

function describeWaitingToolUse(state: SessionState, id: string): string {
  const use = state.getToolUse(id)
  const shownId = quoteAndShortenName(id)
  if (!use) return shownId
  if (use.isContradicted) return `${shownId}: the service sent it with two different inputs`
  return `${shownId}: ${summarizeToolUse(use, findToolInput(use.text ?? '{}'))}`
}
