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

// zod/mini has no messages of its own, and to compile a schema takes longer than to check the few values of a run.
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
      const most = `must be ${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`
      return issue.origin === 'string' ? `${most} characters long` : most
    }
    if (issue.code === 'unrecognized_keys') return `has an unknown key: ${issue.keys.join(', ')}`
    return 'is not valid'
  },
})

export * from 'zod/mini'

/** A shorter list has so few problems that all may be kept. */
const short = 1000

/**
 * A list that is checked up to `mostCounted` wrong elements: zod would keep millions of problems, and pass them as the
 * arguments of a function, for which the stack is too small.
 */
export function array<T extends z.ZodMiniType>(element: T): z.ZodMiniArray<T> {
  const schema = z.array(element)
  const { run } = schema._zod
  schema._zod.run = (payload, context) => {
    const { value } = payload
    if (!Array.isArray(value) || value.length <= short) return run(payload, context)
    let wrong = 0
    const last = value.findIndex((each) => !element.safeParse(each).success && ++wrong > mostCounted)
    return run(last < 0 ? payload : { value: value.slice(0, last + 1), issues: payload.issues }, context)
  }
  return schema
}

/** An object with any keys: with `__proto__` too, which zod neither checks nor keeps. */
export function record<T extends z.ZodMiniType>(value: T): z.ZodMiniRecord<z.ZodMiniString, T> {
  const schema = z.record(z.string(), value)
  const { run } = schema._zod
  schema._zod.run = (payload, context) => {
    const own = Object.getOwnPropertyDescriptor(payload.value ?? {}, '__proto__')
    run(payload, context)
    if (own === undefined || payload.issues.length > 0) return payload
    const part = { value: own.value, issues: [] as typeof payload.issues }
    value._zod.run(part, context)
    payload.issues.push(
      ...part.issues.map((issue) => ({ ...issue, path: ['__proto__', ...(issue.path ?? [])] })),
    )
    Object.defineProperty(payload.value, '__proto__', { ...own, value: part.value })
    return payload
  }
  return schema
}

/** A schema that is built when it is first used: a run uses few of them, and to build takes longer than to parse. */
export function lazily<T>(build: () => T): () => T {
  let schema: T | undefined
  return () => {
    schema ??= build()
    return schema
  }
}
