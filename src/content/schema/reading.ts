import type { Options } from 'ajv'

/** How the validators read a schema, and describe what does not fit. */
export const reading: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  ownProperties: true,
  logger: false,
  verbose: true,
  // 1.15 is a multiple of 0.01, though not by the processor's arithmetic.
  multipleOfPrecision: 9,
}
