import * as z from 'zod/mini'
import { maxCountedProblems } from '../errors.ts'

const kinds: Record<string, string> = {
  string: 'text',
  number: 'a number',
  array: 'a list',
  object: 'an object',
}

// zod/mini has no default messages, so parley defines them. `jitless` stops zod from compiling schemas,
// because compiling takes longer than checking the few values of a run.
z.config({
  jitless: true,
  customError(issue) {
    if (issue.code === 'invalid_type') {
      return issue.input === undefined ? 'is missing' : `must be ${kinds[issue.expected] ?? issue.expected}`
    }
    if (issue.code === 'invalid_value') return `must be ${issue.values.join(' or ')}`
    if (issue.code === 'too_big') return `must be at most ${issue.maximum} characters long`
    if (issue.code === 'unrecognized_keys') return `has an unknown key: ${issue.keys.join(', ')}`
    return 'is not valid'
  },
})

export * from 'zod/mini'

const shortListLength = 1000

/**
 * Creates a list schema that stops after more than `maxCountedProblems` invalid elements. Otherwise zod would
 * collect millions of problems and pass them as call arguments, which overflows the stack.
 */
export function array<T extends z.ZodMiniType>(element: T): z.ZodMiniArray<T> {
  const schema = z.array(element)
  const { run } = schema._zod
  schema._zod.run = (payload, context) => {
    const { value } = payload
    if (!Array.isArray(value) || value.length <= shortListLength) return run(payload, context)
    let wrong = 0
    const last = value.findIndex((each) => !element.safeParse(each).success && ++wrong > maxCountedProblems)
    return run(last < 0 ? payload : { value: value.slice(0, last + 1), issues: payload.issues }, context)
  }
  return schema
}

/**
 * Creates a schema for an object with any keys. Also checks and keeps the key `__proto__`, which zod's own
 * record skips. The values stay unchanged.
 */
export const record = <T extends z.ZodMiniType>(schema: T) =>
  z.custom<Record<string, z.infer<T>>>(isObject, 'must be an object').check(
    z.check(({ value, issues }) => {
      for (const [key, input] of Object.entries(value))
        for (const { path, message } of schema.safeParse(input).error?.issues ?? [])
          if (issues.length <= maxCountedProblems)
            issues.push({ code: 'custom', message, path: [key, ...path], input })
    }),
  )

const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Makes a schema return its input without a copy if `isUnchanged` is true for the input. In a long list,
 * the copies would be 40 % of the allocated memory.
 */
export function returnInputIfUnchanged<T extends z.ZodMiniType>(
  schema: T,
  isUnchanged: (value: unknown) => boolean,
): T {
  const { run } = schema._zod
  schema._zod.run = (payload, context) => (isUnchanged(payload.value) ? payload : run(payload, context))
  return schema
}

/**
 * Returns a function that builds a schema on its first call. Each run uses few schemas, and building a schema
 * takes longer than parsing a value with it.
 */
export function buildOnFirstUse<T>(build: () => T): () => T {
  let schema: T | undefined
  return () => {
    schema ??= build()
    return schema
  }
}
