import { findRepeatedJsonKey, isJsonDeeperThan } from '../../wire/json/scanner.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { maxToolInputDepth } from '../session-state.ts'
import { findToolInput } from '../tool-use-summary.ts'

export type ParsedToolUse = ReturnType<typeof parseToolUse>

const maxInputLength = 100_000

/**
 * Parses the JSON text of a tool use's event. `permission` is newer than the permission in the event and
 * replaces it.
 */
export function parseToolUse(
  text: string,
  { isContradicted = false, permission }: { isContradicted?: boolean | undefined; permission?: unknown } = {},
) {
  const event = SessionEvent.parse(JSON.parse(text))
  const { id = '', type, name, mcp_server_name: server } = event
  const inputText = findToolInput(text)
  return {
    id,
    type,
    text,
    name: typeof name === 'string' ? name : '',
    input: event.input === undefined ? {} : event.input,
    inputText,
    server: typeof server === 'string' && server !== '' ? server : undefined,
    isContradicted,
    /**
     * True if the tool may parse the input differently than parley does, for one of the reasons in
     * `unclearText`.
     */
    isUnclear:
      isContradicted ||
      typeof name !== 'string' ||
      inputText.length > maxInputLength ||
      findRepeatedJsonKey(text) !== undefined ||
      isJsonDeeperThan(inputText, maxToolInputDepth),
    permission: permission ?? event.evaluated_permission,
  }
}
