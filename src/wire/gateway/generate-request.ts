import * as z from '../zod.ts'

/** Accepts numbers of any size, because no range is documented. */
const numeric = (message: string, isAllowed: (value: number) => boolean) =>
  z.custom<number>((value) => typeof value === 'number' && isAllowed(value), message)

const Part = z.looseObject({ text: z.optional(z.string()) })

const Content = z.looseObject({ role: z.optional(z.string()), parts: z.optional(z.array(Part)) })

/**
 * Body of a generation request (src/wire/README.md: gateway, 2.1). The documentation marks no field as
 * required, so all are optional. Unknown fields are accepted.
 */
export const GenerateRequest = z.looseObject({
  contents: z.optional(z.array(Content)),
  generationConfig: z.optional(
    z.looseObject({
      temperature: z.optional(numeric('must be a number', () => true)),
      // JavaScript reads a whole number that is too large as `Infinity`.
      maxOutputTokens: z.optional(
        numeric('must be a whole number', (value) => Number.isInteger(value) || Math.abs(value) === Infinity),
      ),
    }),
  ),
})
export type GenerateRequest = z.infer<typeof GenerateRequest>
