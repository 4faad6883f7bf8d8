import * as z from '../zod.ts'
import { ToolUseId } from './send-events.ts'

type Fields = Record<string, unknown>

const blockKinds = new Map<unknown, string[]>([
  ['user.message', ['text', 'image', 'document']],
  ['user.tool_result', ['text', 'image', 'document', 'search_result']],
  ['user.custom_tool_result', ['text', 'image', 'document', 'search_result']],
])

const Rubric = z.lazily(() => z.string().check(z.maxLength(262144)))

/**
 * What public clients of such services would find odd about an event (public clients, 5). The
 * specification does not show it, so nothing is rejected for it.
 */
export function warnAbout(event: unknown): string[] {
  if (typeof event !== 'object' || event === null) return []
  const { type, rubric, max_iterations: iterations, custom_tool_use_id: customId, content } = event as Fields
  const warnings: string[] = []
  const kinds = blockKinds.get(type)
  for (const block of kinds && Array.isArray(content) ? (content as Fields[]) : []) {
    if (typeof block?.type === 'string' && !kinds?.includes(block.type)) {
      warnings.push(`a block of type '${block.type}' is unusual in a ${type}`)
    }
  }
  if (type === 'user.define_outcome') {
    const { type: kind, content: text } = (typeof rubric === 'object' && rubric ? rubric : {}) as Fields
    if (rubric !== undefined && kind !== 'text' && kind !== 'file')
      warnings.push("rubric is usually {type: 'text'|'file'}")
    if (typeof text === 'string' && !Rubric().safeParse(text).success)
      warnings.push('rubric.content is usually at most 262144 characters long')
    if (typeof iterations === 'number' && iterations > 20)
      warnings.push('max_iterations is usually at most 20')
  }
  if (typeof customId === 'string' && !ToolUseId().safeParse(customId).success) {
    warnings.push('custom_tool_use_id is usually 1 to 128 characters long')
  }
  return warnings
}
