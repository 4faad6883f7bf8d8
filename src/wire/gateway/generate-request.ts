import * as z from '../zod.ts'

/** Accepts numbers of any size, because the specification gives no range. */
const numeric = (message: string, isAllowed: (value: number) => boolean) =>
  z.custom<number>((value) => typeof value === 'number' && isAllowed(value), message)

/**
 * `JSON.parse` turns a number that is too large into `Infinity`. The check accepts `Infinity`, because parley
 * sends the user's digits and not the parsed number.
 */
const isWholeOrInfinite = (value: number) => Number.isInteger(value) || Math.abs(value) === Infinity

/**
 * Body of a chat or image request (src/wire/README.md: gateway, 2.1). The documentation marks no field as
 * required, so all fields are optional. Unknown fields are accepted.
 */
export const GenerateRequest = z.buildOnFirstUse(() => {
  const part = z.looseObject({ text: z.optional(z.string()) })
  const content = z.looseObject({ role: z.optional(z.string()), parts: z.optional(z.array(part)) })
  return z.looseObject({
    contents: z.optional(z.array(content)),
    generationConfig: z.optional(
      z.looseObject({
        temperature: z.optional(numeric('must be a number', () => true)),
        maxOutputTokens: z.optional(numeric('must be a whole number', isWholeOrInfinite)),
      }),
    ),
  })
})
export type GenerateRequest = z.infer<ReturnType<typeof GenerateRequest>>
