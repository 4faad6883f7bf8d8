import { suggestSpelling } from '../../argv/spelling.ts'

/** Documented betas (src/wire/README.md: session events, 9.3). */
export const documentedBetas = [
  'message-batches-2024-09-24',
  'prompt-caching-2024-07-31',
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'pdfs-2024-09-25',
  'token-counting-2024-11-01',
  'token-efficient-tools-2025-02-19',
  'output-128k-2025-02-19',
  'files-api-2025-04-14',
  'mcp-client-2025-04-04',
  'mcp-client-2025-11-20',
  'dev-full-thinking-2025-05-14',
  'interleaved-thinking-2025-05-14',
  'code-execution-2025-05-22',
  'extended-cache-ttl-2025-04-11',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'model-context-window-exceeded-2025-08-26',
  'skills-2025-10-02',
  'fast-mode-2026-02-01',
  'output-300k-2026-03-24',
  'user-profiles-2026-03-24',
  'user-profiles-2026-08-18',
  'user-profiles-2026-09-04',
  'advisor-tool-2026-03-01',
  'managed-agents-2026-04-01',
  'cache-diagnosis-2026-04-07',
  'dreaming-2026-04-21',
  'thinking-token-count-2026-05-13',
  'server-side-fallback-2026-06-01',
  'server-side-fallback-2026-07-01',
  'fallback-credit-2026-06-01',
  'fallback-credit-2026-07-01',
  'agent-memory-2026-07-22',
  'mid-conversation-tool-changes-2026-07-01',
  'compact-2026-01-12',
  'computer-use-2025-11-24',
  'mcp-tunnels-2026-06-22',
  'structured-outputs-2025-11-13',
  'task-budgets-2026-03-13',
  'thinking-display-updates-2026-08-18',
  'ce-user-management-2026-07-13',
  'mid-conversation-output-config-2026-07-01',
  'thinking-binding-controls-2026-08-01',
  'mid-conversation-system-clear-at-2026-08-21',
  'compact-2026-09-04',
]

/** Excludes blanks and commas, because a comma separates betas in the header. */
export const betaPattern = /^[!-+\--~]+$/

export function describeUndocumentedBeta(ids: readonly string[]): string | undefined {
  const id = ids.find((each) => !documentedBetas.includes(each))
  if (id === undefined) return undefined
  // Users often remember a beta's name without its date, so the message suggests the latest beta of this name.
  const latest = documentedBetas.findLast((known) => known.replace(/-\d{4}-\d\d-\d\d$/, '') === id)
  const meant = latest ? ` (did you mean ${latest}?)` : suggestSpelling(id, documentedBetas)
  return `undocumented beta '${id}'${meant}; --no-validate accepts it`
}
