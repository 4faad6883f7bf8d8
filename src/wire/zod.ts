import * as z from 'zod/mini'
import { mostCounted } from '../errors.ts'

const kinds: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

// zod/mini brings no messages of its own, and compiling schemas costs more than the few values a run checks.
z.config({
  jitless: true,
  customError(issue) {
    if (issue.code === 'invalid_type') {
      return issue.input === undefined ? 'is missing' : `must be ${kinds[issue.expected] ?? issue.expected}`
    }
    if (issue.code === 'invalid_value') return `must be ${issue.values.join(' or ')}`
    if (issue.code === 'too_small') {
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`
    }
    if (issue.code === 'too_big') {
      return `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
    }
    return 'is not valid'
  },
})

export * from 'zod/mini'

/**
 * A list that tells at most one problem more than `mostCounted`: zod hands a list's problems on as the arguments of
 * a function, and a hundred thousand of them are too many for the stack.
 */
export function array<T extends z.ZodMiniType>(element: T): z.ZodMiniArray<T> {
  const schema = z.array(element)
  const { run } = schema._zod
  schema._zod.run = (payload, context) => {
    const result = run(payload, context) as typeof payload
    if (result.issues.length > mostCounted) result.issues.length = mostCounted + 1
    return result
  }
  return schema
}

/** A schema that is built when it is first used: a run uses few of them, and building takes longer than parsing. */
export function lazily<T>(build: () => T): () => T {
  let schema: T | undefined
  return () => {
    schema ??= build()
    return schema
  }
}
