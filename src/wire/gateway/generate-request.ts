import * as z from '../zod.ts'

const Part = z.looseObject({ text: z.optional(z.string()) })

const Content = z.looseObject({ role: z.optional(z.string()), parts: z.optional(z.array(Part)) })

/** The generation request (gateway, 2.1). No field is documented as required; fields not shown pass through. */
export const GenerateRequest = z.looseObject({
  contents: z.optional(z.array(Content)),
  generationConfig: z.optional(
    z.looseObject({
      temperature: z.optional(z.number()),
      maxOutputTokens: z.optional(z.int().check(z.positive())),
    }),
  ),
})
export type GenerateRequest = z.infer<typeof GenerateRequest>
