import type { AnswerSchema, SchemaOptions } from '../../content/schema/schema.ts'
import type { Context } from '../../context.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import type { Question } from './request.ts'

/** Reads the schema that answers must fit; what checks it is loaded only where one is given. */
export async function readSchema(
  context: Context,
  settings: ResolvedSettings,
  options: SchemaOptions,
): Promise<AnswerSchema | undefined> {
  if (options.schema === undefined && options.schemaRetries === undefined) return undefined
  const { openSchema } = await import('../../content/schema/schema.ts')
  return openSchema(context, settings, options)
}

export const withSchema = (question: Question, schema: AnswerSchema | undefined): Question =>
  schema
    ? {
        ...question,
        prompt: { ...question.prompt, turn: [...question.prompt.turn, ...schema.parts] },
        assignments: [...schema.assignments, ...question.assignments],
      }
    : question
