import * as z from '../zod.ts'

/** A JSON number, also one that is too large for JavaScript. No page shows a range. */
const numeric = (message: string, isAllowed: (value: number) => boolean) =>
  z.custom<number>((value) => typeof value === 'number' && isAllowed(value), message)

const Part = z.looseObject({ text: z.optional(z.string()) })

const Content = z.looseObject({ role: z.optional(z.string()), parts: z.optional(z.array(Part)) })

/** The generation request (gateway, 2.1). No field is documented as required; fields not shown pass through. */
export const GenerateRequest = z.looseObject({
  contents: z.optional(z.array(Content)),
  generationConfig: z.optional(
    z.looseObject({
      temperature: z.optional(numeric('must be a number', () => true)),
      // A number beyond the largest of JavaScript's is read as `Infinity`.
      maxOutputTokens: z.optional(
        numeric('must be a whole number', (value) => Number.isInteger(value) || Math.abs(value) === Infinity),
      ),
    }),
  ),
})
export type GenerateRequest = z.infer<typeof GenerateRequest>
