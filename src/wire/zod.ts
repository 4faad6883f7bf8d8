import * as z from 'zod/mini'

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

/** A schema that is built when it is first used: a run uses few of them, and building takes longer than parsing. */
export function lazily<T>(build: () => T): () => T {
  let schema: T | undefined
  return () => {
    schema ??= build()
    return schema
  }
}
