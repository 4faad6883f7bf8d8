import type { Options } from 'ajv'

export const validatorOptions: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  ownProperties: true,
  logger: false,
  verbose: true,
  // In floating-point arithmetic, 1.15 / 0.01 is not a whole number. With this precision, ajv accepts 1.15 as
  // a multiple of 0.01.
  multipleOfPrecision: 9,
}
